import { spreadOf, spreadOfValid } from './figures.ts'
import { PORTKEY_ON_NODE } from './portkey.ts'
import type { MemoryStart, Report, SystemReport } from './report.ts'
import { beside, FLOOR, markdownTable, type Figure, type Window } from './table.ts'
import { FIRST_STREAMS, IDLE_AFTER_MS, type WindowKind } from './windows.ts'

/** A target for the router, and the measured value. */
export interface TargetResult {
  readonly title: string
  /** Undefined where a system it needs did not run or had no valid window. */
  readonly measured: number | undefined
  /** Undefined: nothing is asked of it. */
  readonly bound: string | undefined
  readonly met: boolean
  /** How far from the bound: 1 is the bound itself, more is a target that is not met. */
  readonly ofBound: number | undefined
}

type Read = (system: string) => number | undefined

interface Bound {
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
}

/** What is to hold of a report; without a bound: a figure that is shown beside the others. */
export interface Target extends Bound {
  readonly title: string
  readonly measure: (report: Report) => number | undefined
}

/** The system that another is compared with, and how. */
interface Yardstick {
  readonly other: string
  readonly how: (own: number, other: number) => number
}

/** As a multiple of the other system's figure. */
const OF = (other: string): Yardstick => ({ other, how: (own, its) => own / its })

/** As the difference from the other system's figure. */
const OVER = (other: string): Yardstick => ({ other, how: (own, its) => own - its })

/** Frames that 512 streams are sent in a second. */
const SENT = 25_600

/** What must hold in one run beside the floor and the peer. */
export const COMPARISON_TARGETS: readonly Target[] = [
  compared('CPU per request at 64, of the floor', 'whole-64', cpu, 'router', OF(FLOOR), {
    atMost: 3,
  }),
  compared(
    'CPU per request at 64, pinned, of the floor',
    'whole-64',
    cpu,
    'router-pinned',
    OF(FLOOR),
    {
      atMost: 3.3,
    },
  ),
  compared('requests/s at 64, of the floor', 'whole-64', rate, 'router', OF(FLOOR), {
    atLeast: 0.4,
  }),
  compared(
    'requests/s at 64, of Portkey on Node',
    'whole-64',
    rate,
    'router',
    OF(PORTKEY_ON_NODE),
    {
      atLeast: 1,
    },
  ),
  compared('p50 added over direct at 1, ms', 'whole-1', p50, 'router', OVER('direct'), {
    atMost: 2,
  }),
  compared(
    'p50 added over direct at 1, pinned, ms',
    'whole-1',
    p50,
    'router-pinned',
    OVER('direct'),
    { atMost: 2 },
  ),
  compared(
    'first delta added over the floor, ms',
    'first-delta',
    firstDelta,
    'router',
    OVER(FLOOR),
    {
      atMost: 2,
    },
  ),
  compared(
    'first delta added over the floor, pinned, ms',
    'first-delta',
    firstDelta,
    'router-pinned',
    OVER(FLOOR),
    {
      atMost: 2,
    },
  ),
  absolute('CPU per frame, 64 streams, us', 'streams-64', cpu, 'router', { atMost: 75 }),
  absolute('CPU per frame, 64 streams, pinned, us', 'streams-64', cpu, 'router-pinned', {
    atMost: 90,
  }),
  absolute('CPU per frame, 512 streams, pinned, us', 'streams-512', cpu, 'router-pinned', {
    atMost: 45,
  }),
  absolute(
    'frames/s, 512 streams, pinned, of those sent',
    'streams-512',
    ({ framesPerSecond }) => framesPerSecond / SENT,
    'router-pinned',
    { atLeast: 0.98 },
  ),
  {
    title: 'memory per open stream, of the floor',
    atMost: 2,
    measure: (report) => {
      const read = memoryReader(report, ({ perStreamKib }) => perStreamKib)
      return combine(read('router'), read(FLOOR), (own, floor) => own / floor)
    },
  },
  {
    title: `memory of worker and daemon, idle ${IDLE_AFTER_MS / 1_000} s after start, MiB`,
    atMost: 300,
    measure: (report) => memoryReader(report, ({ idleMib }) => idleMib)('router'),
  },
  {
    title: `the same, idle after ${FIRST_STREAMS.toLocaleString('en')} streams, MiB`,
    measure: (report) => memoryReader(report, ({ servedMib }) => servedMib)('router'),
  },
  growth('prompt of 10 MiB, of 4 prompts of 2.5 MiB', 'prompt of 10 MiB', 'prompt of 2.5 MiB', 4),
  growth('line of 8 MiB, of 4 lines of 2 MiB', 'line of 8 MiB', 'line of 2 MiB', 4),
]

/** A figure of one kind of window against that of another system in the same round, as the median of the rounds. */
function compared(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  own: string,
  { other, how }: Yardstick,
  bound: Bound,
): Target {
  const measure = (report: Report) =>
    medianBeside(
      report,
      own,
      beside(title, kind, other, (left, right) => how(figure(left), figure(right))),
    )
  return { title, ...bound, measure }
}

/** The median of a figure that is read round by round; undefined where the system was not measured. */
export function medianBeside(report: Report, name: string, { read }: Figure): number | undefined {
  const system = find(report, name)
  return system === undefined ? undefined : read(system, report)?.median
}

/** A figure of one kind of window of one system, as its median. */
export function absolute(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  system: string,
  bound: Bound,
): Target {
  return { title, ...bound, measure: (report) => reader(report, kind, figure)(system) }
}

/** Reads the median of a figure over the starts of a system for its memory. */
function memoryReader(report: Report, figure: (start: MemoryStart) => number): Read {
  return (name) => spreadOf((find(report, name)?.memory?.starts ?? []).map(figure))?.median
}

/** Linear time gives 1; 1.5 allows for noise; quadratic time would give `times`. */
function growth(title: string, large: string, small: string, times: number): Target {
  const measure = (report: Report) => {
    const sizes = find(report, 'router')?.sizesMs ?? {}
    const base = sizes[small]
    const whole = base == null ? undefined : base * times
    return combine(sizes[large] ?? undefined, whole, (left, right) => left / right)
  }
  return { title, atMost: 1.5, measure }
}

export function rate({ perSecond }: Window): number {
  return perSecond
}

export function cpu({ cpuUs }: Window): number {
  return cpuUs
}

function p50({ p50Ms }: Window): number {
  return p50Ms
}

function firstDelta({ firstDeltaP50Ms }: Window): number {
  return firstDeltaP50Ms
}

/** Reads the median of a figure by the name of a system. */
export function reader(report: Report, kind: WindowKind, figure: (window: Window) => number): Read {
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

/** Undefined without a bound. */
function shareOfBound(measured: number, { atLeast, atMost }: Bound): number | undefined {
  if (atLeast !== undefined) return atLeast / measured
  return atMost === undefined ? undefined : measured / atMost
}

function boundText({ atLeast, atMost }: Bound): string | undefined {
  if (atLeast !== undefined) return `at least ${atLeast}`
  return atMost === undefined ? undefined : `at most ${atMost}`
}

/** Each target with what the run measured. */
export function checkTargets(report: Report, targets: readonly Target[]): readonly TargetResult[] {
  return targets.map(({ title, measure, ...bound }) => {
    const found = measure(report)
    // A size that could not be measured is none.
    const measured = Number.isNaN(found) ? undefined : found
    const ofBound = measured === undefined ? undefined : shareOfBound(measured, bound)
    return {
      title,
      measured,
      bound: boundText(bound),
      met: ofBound !== undefined && ofBound <= 1,
      ofBound,
    }
  })
}

function stateText({ measured, bound, met }: TargetResult): string {
  if (measured === undefined) return 'not measured'
  if (bound === undefined) return '-'
  return met ? 'met' : '**not met**'
}

/** The targets as a table in Markdown. */
export function targetTable(report: Report, targets: readonly Target[]): string {
  const rows = checkTargets(report, targets).map((result) => [
    result.title,
    result.measured?.toFixed(result.measured < 100 ? 2 : 0) ?? '-',
    result.bound ?? 'no target',
    stateText(result),
  ])
  return markdownTable(['target', 'measured', 'bound', ''], rows)
}
