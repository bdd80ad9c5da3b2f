import { spreadOf, spreadOfValid, type Spread } from './figures.ts'
import type { Report, SystemReport } from './report.ts'
import { FRONT } from './system.ts'
import type { WindowKind } from './windows.ts'

/** One row of the table: its title, and how it is read from a system's report. */
export interface Figure {
  readonly title: string
  readonly read: (system: SystemReport, report: Report) => Spread | undefined
  readonly digits: number
}

/** The rows of the table. */
export const FIGURES: readonly Figure[] = [
  rate('requests/s at 1', 'whole-1'),
  rate('requests/s at 16', 'whole-16'),
  rate('requests/s at 64', 'whole-64'),
  of('p99 at 64, ms', 'whole-64', ({ p99Ms }) => p99Ms, 1),
  of('CPU per request at 64, us', 'whole-64', ({ cpuUs }) => cpuUs, 0),
  ...['workerd', 'daemon', FRONT].map((group) => partOf(group, 'whole-64')),
  added('p50 added over direct at 1, ms', 'whole-1', ({ p50Ms }) => p50Ms),
  added('p99 added over direct at 1, ms', 'whole-1', ({ p99Ms }) => p99Ms),
  added(
    'first delta added over direct, ms',
    'first-delta',
    ({ firstDeltaP50Ms }) => firstDeltaP50Ms,
  ),
  of('frames/s, 64 streams (3,200 sent)', 'streams-64', (each) => each.framesPerSecond, 0),
  of('frames/s, 128 streams (6,400 sent)', 'streams-128', (each) => each.framesPerSecond, 0),
  of('frames/s, 256 streams (12,800 sent)', 'streams-256', (each) => each.framesPerSecond, 0),
  of('frames/s, 512 streams (25,600 sent)', 'streams-512', (each) => each.framesPerSecond, 0),
  of('CPU per frame, 64 streams, us', 'streams-64', ({ cpuUs }) => cpuUs, 0),
  of('CPU per frame, 128 streams, us', 'streams-128', ({ cpuUs }) => cpuUs, 0),
  of('CPU per frame, 256 streams, us', 'streams-256', ({ cpuUs }) => cpuUs, 0),
  of('CPU per frame, 512 streams, us', 'streams-512', ({ cpuUs }) => cpuUs, 0),
  ...['workerd', 'daemon', FRONT].map((group) => partOf(group, 'streams-512')),
  of('gap between frames, 64 streams, p50, ms', 'streams-64', ({ gapP50Ms }) => gapP50Ms, 0),
  of('gap between frames, 64 streams, p99, ms', 'streams-64', ({ gapP99Ms }) => gapP99Ms, 0),
  of('gap between frames, 512 streams, p50, ms', 'streams-512', ({ gapP50Ms }) => gapP50Ms, 0),
  of('gap between frames, 512 streams, p99, ms', 'streams-512', ({ gapP99Ms }) => gapP99Ms, 0),
  memory('resident memory idle, MiB', (each) => each.idleMib),
  of('resident memory at 64, MiB', 'whole-64', ({ residentMib }) => residentMib, 0),
  memory('resident memory after, MiB', (each) => each.afterMib),
  memory('memory per open stream, KiB', (each) => each.perStreamKib),
]

type Window = SystemReport['windows'][string][number]

export function of(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  digits: number,
): Figure {
  return { title, digits, read: ({ windows }) => spreadOfValid(windows[kind] ?? [], figure) }
}

/** CPU of one group of processes, as a part of the row above. */
export function partOf(group: string, kind: WindowKind): Figure {
  return of(`- of it ${group}`, kind, ({ cpuUsBy }) => cpuUsBy[group] ?? Number.NaN, 0)
}

function rate(title: string, kind: WindowKind): Figure {
  return of(title, kind, ({ perSecond }) => perSecond, 0)
}

/** The difference to the direct calls of the same round. */
function added(title: string, kind: WindowKind, figure: (window: Window) => number): Figure {
  return {
    title,
    digits: 2,
    read: ({ windows }, { systems }) => {
      const direct = systems.find(({ name }) => name === 'direct')?.windows[kind] ?? []
      const rounds = (windows[kind] ?? []).map((window, round) => {
        const beside = direct[round]
        const counts = window.invalid === null && beside?.invalid === null
        return counts ? figure(window) - figure(beside) : Number.NaN
      })
      return spreadOf(rounds)
    },
  }
}

function memory(
  title: string,
  figure: (each: NonNullable<SystemReport['memory']>) => number,
): Figure {
  return {
    title,
    digits: 0,
    read: ({ memory: each }) => (each === null ? undefined : spreadOf([figure(each)])),
  }
}

/** Median, and lowest to highest where there were several windows. */
export function spreadText(spread: Spread | undefined, digits: number): string {
  if (spread === undefined) return '-'
  const text = (value: number) => value.toFixed(digits)
  if (spread.min === spread.max) return text(spread.median)
  return `${text(spread.median)} (${text(spread.min)}-${text(spread.max)})`
}

/** The figures of a report as a Markdown table with padded columns. */
export function figureTable(report: Report, figures: readonly Figure[] = FIGURES): string {
  const { systems } = report
  const rows = figures.map(({ title, read, digits }) => [
    title,
    ...systems.map((system) => spreadText(read(system, report), digits)),
  ])
  const head = ['', ...systems.map(({ name }) => name)]
  const invalid = ['invalid windows', ...systems.map(invalidText)]
  return markdownTable(head, [...rows, ...sizeRows(report), invalid])
}

function sizeRows({ systems }: Report): string[][] {
  const names = [...new Set(systems.flatMap(({ sizesMs }) => Object.keys(sizesMs)))]
  return names.map((name) => [
    `${name}, ms`,
    ...systems.map(({ sizesMs }) => sizeText(sizesMs[name])),
  ])
}

/** Undefined: not measured; NaN: failed. */
function sizeText(ms: number | null | undefined): string {
  if (ms === undefined) return '-'
  return ms === null || Number.isNaN(ms) ? 'failed' : ms.toFixed(1)
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
