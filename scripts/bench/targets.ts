import { spreadOfValid } from './figures.ts'
import type { Report, SystemReport } from './report.ts'
import { markdownTable } from './table.ts'
import type { WindowKind } from './windows.ts'

/** A target for the router, and the measured value. */
export interface TargetResult {
  readonly title: string
  /** Undefined where a system it needs did not run or had no valid window. */
  readonly measured: number | undefined
  readonly bound: string
  readonly met: boolean
}

type Window = SystemReport['windows'][string][number]
type Read = (system: string) => number | undefined

interface Target {
  readonly title: string
  readonly atLeast?: number
  readonly atMost?: number
  readonly measure: (report: Report) => number | undefined
}

const TARGETS: readonly Target[] = [
  ratio('requests/s at 64, of the floor', 'whole-64', rate, 'router', 'floor', { atLeast: 0.5 }),
  ratio('requests/s at 64, of Portkey on Node', 'whole-64', rate, 'router', 'portkey-node', {
    atLeast: 1.5,
  }),
  ratio('CPU per request at 64, of the floor', 'whole-64', cpu, 'router', 'floor', { atMost: 2.5 }),
  ratio('CPU per request, pinned egress, of direct', 'whole-64', cpu, 'router-pinned', 'router', {
    atMost: 2.5,
  }),
  {
    title: 'first delta added over the floor, ms',
    atMost: 2,
    measure: (report) => {
      const read = reader(report, 'first-delta', ({ firstDeltaP50Ms }) => firstDeltaP50Ms)
      return combine(read('router'), read('floor'), (router, floor) => router - floor)
    },
  },
  {
    title: 'frames/s at 512 streams, of those sent',
    atLeast: 0.98,
    measure: (report) => {
      const read = reader(report, 'streams-512', ({ framesPerSecond }) => framesPerSecond)
      return combine(read('router'), 25_600, divide)
    },
  },
  ratio('CPU per frame at 512 streams, of the floor', 'streams-512', cpu, 'router', 'floor', {
    atMost: 4,
  }),
  {
    title: 'memory per open stream, of the floor',
    atMost: 2.5,
    measure: (report) => {
      const read: Read = (name) => find(report, name)?.memory?.perStreamKib
      return combine(read('router'), read('floor'), divide)
    },
  },
  growth('prompt of 10 MiB, of 4 prompts of 2.5 MiB', 'prompt of 10 MiB', 'prompt of 2.5 MiB', 4),
  growth('line of 8 MiB, of 4 lines of 2 MiB', 'line of 8 MiB', 'line of 2 MiB', 4),
]

function rate({ perSecond }: Window): number {
  return perSecond
}

function cpu({ cpuUs }: Window): number {
  return cpuUs
}

function ratio(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  system: string,
  beside: string,
  bound: Pick<Target, 'atLeast' | 'atMost'>,
): Target {
  const measure = (report: Report) => {
    const read = reader(report, kind, figure)
    return combine(read(system), read(beside), divide)
  }
  return { title, ...bound, measure }
}

/** Linear time gives 1; 1.5 allows for noise; quadratic time would give `times`. */
function growth(title: string, large: string, small: string, times: number): Target {
  const measure = (report: Report) => {
    const sizes = find(report, 'router')?.sizesMs ?? {}
    const base = sizes[small]
    return combine(sizes[large] ?? undefined, base == null ? undefined : base * times, divide)
  }
  return { title, atMost: 1.5, measure }
}

function reader(report: Report, kind: WindowKind, figure: (window: Window) => number): Read {
  return (name) => spreadOfValid(find(report, name)?.windows[kind] ?? [], figure)?.median
}

function find({ systems }: Report, name: string): SystemReport | undefined {
  return systems.find((system) => system.name === name)
}

function combine(
  left: number | undefined,
  right: number | undefined,
  how: (left: number, right: number) => number,
): number | undefined {
  return left === undefined || right === undefined ? undefined : how(left, right)
}

function divide(left: number, right: number): number {
  return left / right
}

/** Each target with what the run measured. */
export function checkTargets(report: Report): readonly TargetResult[] {
  return TARGETS.map(({ title, atLeast, atMost, measure }) => {
    const measured = measure(report)
    const low = atLeast ?? Number.NEGATIVE_INFINITY
    const high = atMost ?? Number.POSITIVE_INFINITY
    return {
      title,
      measured,
      bound: atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`,
      met: measured !== undefined && measured >= low && measured <= high,
    }
  })
}

/** The targets as a table in Markdown. */
export function targetTable(report: Report): string {
  const rows = checkTargets(report).map(({ title, measured, bound, met }) => [
    title,
    measured?.toFixed(2) ?? '-',
    bound,
    measured === undefined ? 'no valid window' : met ? 'met' : 'not met',
  ])
  return markdownTable(['target', 'measured', 'bound', ''], rows)
}
