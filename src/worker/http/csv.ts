import type { Bytes } from '../../protocol/bytes.ts'
import { utf8 } from '../../protocol/bytes.ts'
import { attachment } from './reply.ts'

/** CSV (RFC 4180) that a spreadsheet opens as data and never as formulas. */

export const CSV_TYPE = 'text/csv'

export type CsvCell = string | number | boolean | null

/**
 * The places at which a cell is a formula to some spreadsheet (OWASP, "CSV Injection"); an apostrophe there makes it text.
 * Not only the beginning: where the decimal separator is a comma, spreadsheets take semicolons for the separators of cells,
 * and then quotes do not hold a cell together. Full-width signs count, because spreadsheets read them alike.
 */
const FORMULAS = /^(?=[\t\r\n])|(?<=^|[;\t\r\n])(?=[=+\-@＝＋－＠])/g

const NEEDS_QUOTES = /[",\r\n]/

/** One record with its line end. Null is an empty cell; numbers stay as they are. */
export function csvRecord(cells: readonly CsvCell[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

function cellOf(cell: CsvCell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const text = cell.replaceAll(FORMULAS, "'")
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Whether a request asks for CSV: `text/csv` in `Accept`, unless it is refused there with `q=0`. */
export function wantsCsv(headers: Headers): boolean {
  return (headers.get('accept') ?? '').split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return type === CSV_TYPE && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

/**
 * A streamed CSV answer whose parts are generated as they are read. An error aborts it, so that it cannot be mistaken
 * for a complete one.
 */
export function csvStream(fileName: string, parts: AsyncIterator<string>): Response {
  const body = new ReadableStream<Bytes>({
    async pull(controller) {
      const { value, done } = await parts.next()
      if (done === true) controller.close()
      else controller.enqueue(utf8(value))
    },
  })
  return attachment(body, `${CSV_TYPE}; charset=utf-8; header=present`, fileName)
}
