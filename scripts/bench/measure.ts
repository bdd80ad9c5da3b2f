import { percentile } from './figures.ts'
import type { LoadGenerator } from './load.ts'
import type { LoadPlan, LoadResult } from './load-plan.ts'
import { cpuTimeUs, residentMib } from './processes.ts'
import { chatBody, requestText, type System } from './system.ts'

/** One window as it was measured. */
export interface Sample {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly firstDeltaP50Ms: number
  readonly framesPerSecond: number
  /** CPU of all processes of the system, per completed request or, in streams, per frame. */
  readonly cpuUs: number
  readonly residentMib: number
  /** Why the window counts for nothing, if it does. */
  readonly invalid: string | null
}

export type WindowPlan = Pick<
  LoadPlan,
  'connections' | 'stream' | 'warmMs' | 'windowMs' | 'once'
> & {
  /** Of the mock. */
  readonly behaviour: string
  /** The text of the prompt, where it matters. */
  readonly content?: string
  readonly tools?: readonly unknown[]
}

/** Puts one window of load on a system. */
export async function measure(
  system: System,
  { behaviour, content, tools, ...plan }: WindowPlan,
  load: LoadGenerator,
): Promise<Sample> {
  const body = chatBody(system.model(behaviour), { stream: plan.stream, content, tools })
  const requests = system.callers.map((caller) => requestText(caller, body))
  const at = { cpuUs: 0, residentMib: 0 }
  const result = await load.run(
    { ...plan, port: system.port, requests },
    {
      opened: () => (at.cpuUs = -cpuTimeUs(system.pids)),
      closed: () => {
        at.cpuUs += cpuTimeUs(system.pids)
        at.residentMib = residentMib(system.pids)
      },
    },
  )
  return sampleOf(result, at, plan.stream && plan.once)
}

/**
 * The figures of a window.
 * @param used CPU time inside the window, and the memory at its end
 * @param paced whether the window counts frames and not answers
 */
export function sampleOf(
  result: LoadResult,
  used: { readonly cpuUs: number; readonly residentMib: number },
  paced: boolean,
): Sample {
  const seconds = result.windowMs / 1000
  const units = paced ? result.frames : result.completed
  return {
    perSecond: result.completed / seconds,
    p50Ms: percentile(result.latenciesMs, 50),
    p99Ms: percentile(result.latenciesMs, 99),
    firstDeltaP50Ms: percentile(result.firstDeltaMs, 50),
    framesPerSecond: result.frames / seconds,
    cpuUs: used.cpuUs / units,
    residentMib: used.residentMib,
    invalid: invalidity(result, units),
  }
}

/** A window with any failure tells nothing: errors are cheap to serve. */
function invalidity({ failed, failure }: LoadResult, units: number): string | null {
  if (failed > 0) return `${failed} failed: ${failure ?? 'unknown'}`
  return units === 0 ? 'nothing was completed' : null
}
