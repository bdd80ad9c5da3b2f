import { OTHER_ENDPOINTS } from './endpoints.ts'
import { spreadOf } from './figures.ts'
import { leastOf, limitsOf, moreCoresTable } from './more-cores.ts'
import { section, type Section } from './page.ts'
import type { Report, SystemReport } from './report.ts'
import {
  added,
  beside,
  cpuOfFloor,
  invalidText,
  markdownTable,
  memory,
  of,
  partsOf,
  spreadText,
  systemTable,
  type Figure,
} from './table.ts'
import { COMPARISON_TARGETS } from './comparison-targets.ts'
import { targetTable, type Target } from './targets.ts'
import { FIRST_STREAMS, OPEN_STREAMS, STREAM_KINDS, type WindowKind } from './windows.ts'

const FRAMES_ON_MORE_CORES: Target = {
  title: 'frames/s, pinned, on 16 cores, computed below',
  atLeast: 200_000,
  measure: (report) => leastOf(limitsOf(report, 'router-pinned', 'streams-512')),
}

/** The page of a comparison: every plot and every figure. */
export function comparisonSections(report: Report): readonly Section[] {
  const endpoints = report.systems.filter(
    ({ name }) => name === 'router' || OTHER_ENDPOINTS.includes(name),
  )
  const others = report.systems.filter(({ name }) => !OTHER_ENDPOINTS.includes(name))
  return [
    section(
      'Targets',
      ['targets'],
      targetTable(report, [...COMPARISON_TARGETS, FRAMES_ON_MORE_CORES]),
    ),
    section(
      'Whole answers',
      ['requests', 'cpu-per-request', 'latency'],
      systemTable(report, REQUESTS, others),
      systemTable(report, cpuFigures(report), others),
      systemTable(report, LATENCY, others),
    ),
    section('Streams', ['frames', 'cpu-per-frame', 'gaps'], streamTable(report)),
    section(
      'More cores, computed for attested providers',
      [],
      moreCoresTable(report, 'router-pinned', 'whole-64'),
      moreCoresTable(report, 'router-pinned', 'streams-512', 'frame'),
    ),
    section('Endpoints', ['endpoints'], systemTable(report, ENDPOINT_FIGURES, endpoints)),
    section('Memory', [], systemTable(report, MEMORY, others)),
    section('Large bodies', [], sizeTable(report)),
  ]
}

const REQUESTS: readonly Figure[] = ([1, 16, 64] as const).flatMap((connections) => {
  const kind = `whole-${connections}` as const
  return [
    of(`requests/s at ${connections}`, kind, ({ perSecond }) => perSecond, 0),
    of(`p50 at ${connections}, ms`, kind, ({ p50Ms }) => p50Ms, 2),
    of(`p99 at ${connections}, ms`, kind, ({ p99Ms }) => p99Ms, 1),
  ]
})

function cpuFigures(report: Report): readonly Figure[] {
  return [
    of('CPU per request at 64, us', 'whole-64', ({ cpuUs }) => cpuUs, 0),
    cpuOfFloor('of the floor', 'whole-64'),
    ...partsOf(report, 'whole-64'),
  ]
}

const LATENCY: readonly Figure[] = [
  added('p50 added over direct at 1, ms', 'whole-1', ({ p50Ms }) => p50Ms),
  added('p99 added over direct at 1, ms', 'whole-1', ({ p99Ms }) => p99Ms),
  added('first delta added, ms', 'first-delta', ({ firstDeltaP50Ms }) => firstDeltaP50Ms),
]

const ENDPOINT_FIGURES: readonly Figure[] = [
  of('requests/s at 64', 'whole-64', ({ perSecond }) => perSecond, 0),
  of('p99 at 64, ms', 'whole-64', ({ p99Ms }) => p99Ms, 1),
  of('CPU per request at 64, us', 'whole-64', ({ cpuUs }) => cpuUs, 0),
  beside('of chat', 'whole-64', 'router', (own, chat) => own.cpuUs / chat.cpuUs),
  of('CPU per event at 64 streams, us', 'streams-64', ({ cpuUs }) => cpuUs, 0),
  beside('of chat', 'streams-64', 'router', (own, chat) => own.cpuUs / chat.cpuUs),
]

const MEMORY: readonly Figure[] = [
  memory('idle after start, MiB', ({ idleMib }) => idleMib),
  memory(
    `idle after ${FIRST_STREAMS.toLocaleString('en')} streams, MiB`,
    ({ servedMib }) => servedMib,
  ),
  memory(`${OPEN_STREAMS} open streams, MiB`, ({ openMib }) => openMib),
  memory('per open stream, KiB', ({ perStreamKib }) => perStreamKib),
  of('at 64 connections, MiB', 'whole-64', ({ residentMib }) => residentMib, 0),
  {
    title: 'after everything, MiB',
    digits: 0,
    read: ({ memory: each }) => (each === null ? undefined : spreadOf([each.afterMib])),
  },
]

/** A row for each system and number of streams. */
function streamTable(report: Report): string {
  const kinds = Object.entries(STREAM_KINDS)
  const groups = kinds.flatMap(([, kind]) => partsOf(report, kind).map(({ title }) => title))
  const figuresOf = (kind: WindowKind): readonly Figure[] => [
    of('frames/s', kind, ({ framesPerSecond }) => framesPerSecond, 0),
    of('CPU per frame, us', kind, ({ cpuUs }) => cpuUs, 0),
    cpuOfFloor('of the floor', kind),
    ...[...new Set(groups)].map((group) =>
      of(group, kind, ({ cpuUsBy }) => cpuUsBy[group] ?? Number.NaN, 0),
    ),
    of('gap p50, ms', kind, ({ gapP50Ms }) => gapP50Ms, 0),
    of('gap p99, ms', kind, ({ gapP99Ms }) => gapP99Ms, 0),
  ]
  const rows = report.systems
    .filter(({ name }) => !OTHER_ENDPOINTS.includes(name))
    .flatMap((system) =>
      kinds.flatMap(([streams, kind]) =>
        system.windows[kind] === undefined
          ? []
          : [streamRow(system, streams, figuresOf(kind), report)],
      ),
    )
  const titles = figuresOf('streams-64').map(({ title }) => title)
  return markdownTable(['', 'streams', 'sent/s', ...titles, 'invalid windows'], rows)
}

const FRAMES_PER_SECOND = 50

function streamRow(
  system: SystemReport,
  streams: string,
  figures: readonly Figure[],
  report: Report,
): readonly string[] {
  const kind = Object.entries(STREAM_KINDS).find(([count]) => count === streams)?.[1] ?? ''
  const only = { ...system, windows: { [kind]: system.windows[kind] ?? [] } }
  return [
    system.name,
    streams,
    String(Number(streams) * FRAMES_PER_SECOND),
    ...figures.map(({ read, digits }) => spreadText(read(system, report), digits)),
    invalidText(only),
  ]
}

function sizeTable({ systems }: Report): string {
  const names = [...new Set(systems.flatMap(({ sizesMs }) => Object.keys(sizesMs)))]
  const rows = systems
    .filter(({ sizesMs }) => Object.keys(sizesMs).length > 0)
    .map(({ name, sizesMs }) => [name, ...names.map((size) => sizeText(sizesMs[size]))])
  return markdownTable(['', ...names.map((name) => `${name}, ms`)], rows)
}

/** Undefined: not measured; NaN: failed. */
function sizeText(ms: number | null | undefined): string {
  if (ms === undefined) return '-'
  return ms === null || Number.isNaN(ms) ? 'failed' : ms.toFixed(1)
}
