import { spreadOf, spreadOfValid, type Spread } from './figures.ts'
import type { MemoryStart, Report, SystemReport } from './report.ts'
import type { WindowKind } from './windows.ts'

/** One column of a table: its title, and how it is read from a system's report. */
export interface Figure {
  readonly title: string
  readonly read: (system: SystemReport, report: Report) => Spread | undefined
  readonly digits: number
}

export type Window = SystemReport['windows'][string][number]

export const FLOOR = 'floor'
const DIRECT = 'direct'

export function of(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  digits: number,
): Figure {
  return { title, digits, read: ({ windows }) => spreadOfValid(windows[kind] ?? [], figure) }
}

/** CPU of each group of processes in these windows, one column each. */
export function partsOf({ systems }: Report, kind: WindowKind): readonly Figure[] {
  const windows = systems.flatMap((system) => system.windows[kind] ?? [])
  const groups = new Set(windows.flatMap(({ cpuUsBy }) => Object.keys(cpuUsBy)))
  return [...groups].map((group) =>
    of(group, kind, ({ cpuUsBy }) => cpuUsBy[group] ?? Number.NaN, 0),
  )
}

/** The difference to the direct calls of the same round. */
export function added(title: string, kind: WindowKind, figure: (window: Window) => number): Figure {
  return beside(title, kind, DIRECT, (own, other) => figure(own) - figure(other))
}

/** CPU as a multiple of the floor's in the same round. */
export function cpuOfFloor(title: string, kind: WindowKind): Figure {
  return beside(title, kind, FLOOR, (own, other) => own.cpuUs / other.cpuUs)
}

/** A figure compared with another system's in the same round. */
export function beside(
  title: string,
  kind: WindowKind,
  name: string,
  compare: (own: Window, other: Window) => number,
): Figure {
  const read: Figure['read'] = ({ windows }, { systems }) => {
    const others = systems.find((system) => system.name === name)?.windows[kind] ?? []
    const rounds = (windows[kind] ?? []).map((window, round) => {
      const other = others[round]
      const counts = window.invalid === null && other?.invalid === null
      return counts ? compare(window, other) : Number.NaN
    })
    return spreadOf(rounds)
  }
  return { title, digits: 2, read }
}

/** A figure from the starts that only measured memory. */
export function memory(title: string, figure: (start: MemoryStart) => number): Figure {
  return {
    title,
    digits: 0,
    read: ({ memory: each }) => spreadOf((each?.starts ?? []).map(figure)),
  }
}

/** The median, and the minimum and maximum if they differ. */
export function spreadText(spread: Spread | undefined, digits: number): string {
  if (spread === undefined) return '-'
  const text = (value: number) => value.toFixed(digits)
  if (text(spread.min) === text(spread.max)) return text(spread.median)
  return `${text(spread.median)} (${text(spread.min)}-${text(spread.max)})`
}

/** A row for each system with any of the figures; the last column counts its invalid windows. */
export function systemTable(
  report: Report,
  figures: readonly Figure[],
  systems: readonly SystemReport[] = report.systems,
): string {
  const rows = systems.map((system) => ({
    system,
    cells: figures.map(({ read, digits }) => spreadText(read(system, report), digits)),
  }))
  const shown = rows.filter(
    ({ system, cells }) => cells.some((cell) => cell !== '-') || hasInvalid(system),
  )
  return markdownTable(
    ['', ...figures.map(({ title }) => title), 'invalid windows'],
    shown.map(({ system, cells }) => [system.name, ...cells, invalidText(system)]),
  )
}

function hasInvalid({ windows }: SystemReport): boolean {
  return Object.values(windows)
    .flat()
    .some(({ invalid }) => invalid !== null)
}

/** The number of a system's invalid windows. */
export function invalidText({ windows }: SystemReport): string {
  const all = Object.values(windows).flat()
  return `${all.filter(({ invalid }) => invalid !== null).length} of ${all.length}`
}

/** A Markdown table with columns of even width. */
export function markdownTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((row) => row[column]?.length ?? 0)),
  )
  const line = (row: readonly string[]) =>
    `| ${widths.map((width, column) => (row[column] ?? '').padEnd(width)).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [line(head), rule, ...rows.map(line)].join('\n')
}
