import { spreadOfValid } from './figures.ts'
import type { Report, SystemReport } from './report.ts'
import { FLOOR, markdownTable, type Window } from './table.ts'
import type { WindowKind } from './windows.ts'

/** A target for the router, and the measured value. */
export interface TargetResult {
  readonly title: string
  /** Undefined where a system it needs did not run or had no valid window. */
  readonly measured: number | undefined
  readonly bound: string
  readonly met: boolean
  /** How far from the bound: 1 is the bound itself, more is a target that is not met. */
  readonly ofBound: number | undefined
}

type Read = (system: string) => number | undefined

interface Bound {
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
}

/** What is to hold of a report. */
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
  compared('requests/s at 64, of Portkey on Node', 'whole-64', rate, 'router', OF('portkey-node'), {
    atLeast: 1,
  }),
  compared('p50 added over direct at 1, ms', 'whole-1', p50, 'router', OVER('direct'), {
    atMost: 2,
  }),
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
  ofMemory('memory per open stream, of the floor', ({ perStreamKib }) => perStreamKib, FLOOR, 2),
  ofMemory('memory of idle worker and daemon, MiB', ({ idleMib }) => idleMib, undefined, 300),
  growth('prompt of 10 MiB, of 4 prompts of 2.5 MiB', 'prompt of 10 MiB', 'prompt of 2.5 MiB', 4),
  growth('line of 8 MiB, of 4 lines of 2 MiB', 'line of 8 MiB', 'line of 2 MiB', 4),
]

/** A figure of one kind of window against that of another system, both as medians. */
function compared(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  own: string,
  { other, how }: Yardstick,
  bound: Bound,
): Target {
  const measure = (report: Report) => {
    const read = reader(report, kind, figure)
    return combine(read(own), read(other), how)
  }
  return { title, ...bound, measure }
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

function ofMemory(
  title: string,
  figure: (memory: NonNullable<SystemReport['memory']>) => number,
  other: string | undefined,
  atMost: number,
): Target {
  const measure = (report: Report) => {
    const read: Read = (name) => {
      const memory = find(report, name)?.memory
      return memory ? figure(memory) : undefined
    }
    const own = read('router')
    return other === undefined ? own : combine(own, read(other), (left, right) => left / right)
  }
  return { title, atMost, measure }
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

function shareOfBound(measured: number, { atLeast, atMost = Number.NaN }: Bound): number {
  return atLeast === undefined ? measured / atMost : atLeast / measured
}

/** Each target with what the run measured. */
export function checkTargets(report: Report, targets: readonly Target[]): readonly TargetResult[] {
  return targets.map(({ title, atLeast, atMost, measure }) => {
    const found = measure(report)
    // A size that could not be measured is none.
    const measured = Number.isNaN(found) ? undefined : found
    const ofBound = measured === undefined ? undefined : shareOfBound(measured, { atLeast, atMost })
    return {
      title,
      measured,
      bound: atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`,
      met: ofBound !== undefined && ofBound <= 1,
      ofBound,
    }
  })
}

/** The targets as a table in Markdown. */
export function targetTable(report: Report, targets: readonly Target[]): string {
  const rows = checkTargets(report, targets).map(({ title, measured, bound, met }) => [
    title,
    measured?.toFixed(measured < 100 ? 2 : 0) ?? '-',
    bound,
    measured === undefined ? 'no valid window' : met ? 'met' : '**not met**',
  ])
  return markdownTable(['target', 'measured', 'bound', ''], rows)
}
