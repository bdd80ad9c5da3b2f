import { percentile } from './figures.ts'
import type { Load, LoadPlan, LoadResult } from './load-plan.ts'
import { cpuTimesUs, residentMib } from './processes.ts'
import { requestsOf, type System } from './system.ts'

/** One window as it was measured. */
export interface Sample {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly firstDeltaP50Ms: number
  readonly framesPerSecond: number
  /** Time between two frames of a stream as they arrive; frames that arrive together have one gap. */
  readonly gapP50Ms: number
  readonly gapP99Ms: number
  /** CPU of all processes of the system, per completed request or, in streams, per frame. */
  readonly cpuUs: number
  /** The same, by group of processes. */
  readonly cpuUsBy: Readonly<Record<string, number>>
  readonly residentMib: number
  /** Why the window is invalid; null when it is valid. */
  readonly invalid: string | null
}

export type WindowPlan = Pick<
  LoadPlan,
  'connections' | 'stream' | 'warmMs' | 'windowMs' | 'once'
> & {
  /** The mock's behaviour. */
  readonly behaviour: string
  /** The text of the prompt; a default unless given. */
  readonly content?: string
  readonly tools?: readonly unknown[]
}

/** Runs one window of load on a system. */
export async function measure(
  system: System,
  { behaviour, content, tools, ...plan }: WindowPlan,
  load: Load,
): Promise<Sample> {
  const cpuUsed = () => system.cpuTimesUs?.() ?? cpuTimesUs(system.processes())
  const requests = [
    ...(await requestsOf(system, behaviour, { stream: plan.stream, content, tools })),
  ]
  let before: Readonly<Record<string, number>> = {}
  const used = { cpuUs: before, residentMib: 0 }
  const result = await (system.load ?? load).run(
    { ...plan, port: system.port, requests },
    {
      opened: () => (before = cpuUsed()),
      closed: () => {
        used.cpuUs = eachOf(cpuUsed(), (us, group) => us - (before[group] ?? 0))
        used.residentMib = residentMib(system.processes())
      },
    },
  )
  return sampleOf(result, used, plan.stream && plan.once)
}

/**
 * The figures of a window.
 * @param used CPU time inside the window by kind of process, and the memory at its end
 * @param paced whether the window counts frames instead of answers
 */
export function sampleOf(
  result: LoadResult,
  used: { readonly cpuUs: Readonly<Record<string, number>>; readonly residentMib: number },
  paced: boolean,
): Sample {
  const seconds = result.windowMs / 1000
  const units = paced ? result.frames : result.completed
  const cpuUsBy = eachOf(used.cpuUs, (us) => us / units)
  return {
    perSecond: result.completed / seconds,
    p50Ms: percentile(result.latenciesMs, 50),
    p99Ms: percentile(result.latenciesMs, 99),
    firstDeltaP50Ms: percentile(result.firstDeltaMs, 50),
    framesPerSecond: result.frames / seconds,
    gapP50Ms: result.gapMs?.p50 ?? Number.NaN,
    gapP99Ms: result.gapMs?.p99 ?? Number.NaN,
    cpuUs: Object.values(cpuUsBy).reduce((total, us) => total + us, 0),
    cpuUsBy,
    residentMib: used.residentMib,
    invalid: invalidity(result, units),
  }
}

function eachOf(
  figures: Readonly<Record<string, number>>,
  change: (figure: number, name: string) => number,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(figures).map(([name, figure]) => [name, change(figure, name)]),
  )
}

/** A window with any failure is discarded, because errors are cheap to serve. */
function invalidity({ failed, failure }: LoadResult, units: number): string | null {
  if (failed > 0) return `${failed} failed: ${failure ?? 'unknown'}`
  return units === 0 ? 'nothing was completed' : null
}
