import type { Row } from '../storage/database.ts'
import { USAGE_COLUMNS } from './columns.ts'

/** The JSON of one usage row (see docs/api.md). */
export function usageRowJson(row: Row): string {
  const members = USAGE_COLUMNS.flatMap(({ name, read, omitted, isNumber }) => {
    const cell = read(row)
    if (cell === omitted) return []
    return [`"${name}":${isNumber ? String(cell) : JSON.stringify(cell)}`]
  })
  return `{${members.join(',')}}`
}
