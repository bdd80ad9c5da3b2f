import { availableParallelism } from 'node:os'
import { machineCpuUs, treeCpuUs } from './processes.ts'

/** CPU time used so far, in microseconds, and the number of processors. */
export interface CpuMeter {
  readonly machineUs: () => number
  /** CPU time of this process and its descendants. */
  readonly ownUs: () => number
  readonly processors: number
}

const THIS_MACHINE: CpuMeter = {
  machineUs: machineCpuUs,
  ownUs: () => treeCpuUs(process.pid),
  processors: availableParallelism(),
}

/**
 * Measures the CPU that everything else on this machine has used since the object was created: all except this process
 * and its descendants.
 */
export class OtherWork {
  readonly #sinceMs: number
  readonly #meter: CpuMeter
  readonly #usedUs: number

  /** @param nowMs the time of a monotonic clock, ms */
  constructor(nowMs: number, meter = THIS_MACHINE) {
    this.#sinceMs = nowMs
    this.#meter = meter
    this.#usedUs = meter.machineUs() - meter.ownUs()
  }

  /** The share of all processors, from 0 to 1. */
  share(nowMs: number): number {
    const { machineUs, ownUs, processors } = this.#meter
    const passedUs = (nowMs - this.#sinceMs) * 1_000 * processors
    return Math.max(0, machineUs() - ownUs() - this.#usedUs) / passedUs
  }
}
