import { spreadOf, spreadOfValid } from './figures.ts'
import type { MemoryStart, Report, SystemReport } from './report.ts'
import { beside, markdownTable, type Figure, type Window } from './table.ts'
import type { WindowKind } from './windows.ts'

/** A target for the router, and the measured value. */
export interface TargetResult {
  readonly title: string
  /** Undefined when a system that the target needs did not run or had no valid window. */
  readonly measured: number | undefined
  /** Undefined when the value has no target. */
  readonly bound: string | undefined
  readonly met: boolean
  /** The value relative to the bound: 1 is the bound itself, and a value above 1 misses the target. */
  readonly ofBound: number | undefined
}

type Read = (system: string) => number | undefined

interface Bound {
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
}

/** A target for a report; without a bound, a figure that is only shown. */
export interface Target extends Bound {
  readonly title: string
  readonly measure: (report: Report) => number | undefined
}

/** The system to compare with, and how. */
interface Yardstick {
  readonly other: string
  readonly how: (own: number, other: number) => number
}

/** As a multiple of the other system's figure. */
export const OF = (other: string): Yardstick => ({ other, how: (own, its) => own / its })

/** As the difference from the other system's figure. */
export const OVER = (other: string): Yardstick => ({ other, how: (own, its) => own - its })

/** A figure in one kind of window, compared with another system's in the same round; the median over the rounds. */
export function compared(
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

/** The median of a figure over the rounds; undefined when the system was not measured. */
export function medianBeside(report: Report, name: string, { read }: Figure): number | undefined {
  const system = find(report, name)
  return system === undefined ? undefined : read(system, report)?.median
}

/** The median of a figure of one system in one kind of window. */
export function absolute(
  title: string,
  kind: WindowKind,
  figure: (window: Window) => number,
  system: string,
  bound: Bound,
): Target {
  return { title, ...bound, measure: (report) => reader(report, kind, figure)(system) }
}

/** Reads the median of a figure over the starts of a system that only measured memory. */
export function memoryReader(report: Report, figure: (start: MemoryStart) => number): Read {
  return (name) => spreadOf((find(report, name)?.memory?.starts ?? []).map(figure))?.median
}

/**
 * A target for time that grows linearly with size: linear time gives 1; 1.5 allows for noise; quadratic time would give
 * `times`.
 */
export function growth(title: string, large: string, small: string, times: number): Target {
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

export function p50({ p50Ms }: Window): number {
  return p50Ms
}

export function firstDelta({ firstDeltaP50Ms }: Window): number {
  return firstDeltaP50Ms
}

/** Reads the median of a figure by the name of a system. */
export function reader(report: Report, kind: WindowKind, figure: (window: Window) => number): Read {
  return (name) => spreadOfValid(find(report, name)?.windows[kind] ?? [], figure)?.median
}

function find({ systems }: Report, name: string): SystemReport | undefined {
  return systems.find((system) => system.name === name)
}

export function combine(
  left: number | undefined,
  right: number | undefined,
  how: (left: number, right: number) => number,
): number | undefined {
  return left === undefined || right === undefined ? undefined : how(left, right)
}

/** The value relative to its bound; undefined without a bound. */
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
    // A size that could not be measured is NaN: it counts as not measured.
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
