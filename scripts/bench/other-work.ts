import { availableParallelism } from 'node:os'
import { machineCpuUs, treeCpuUs } from './processes.ts'

/** CPU time used so far, in microseconds, and the processors that it is used of. */
export interface CpuMeter {
  readonly machineUs: () => number
  /** Of this process and everything that it started. */
  readonly ownUs: () => number
  readonly processors: number
}

const THIS_MACHINE: CpuMeter = {
  machineUs: machineCpuUs,
  ownUs: () => treeCpuUs(process.pid),
  processors: availableParallelism(),
}

/** What else used the processors of this machine since it was made, beside this process and what it started. */
export class OtherWork {
  readonly #sinceMs: number
  readonly #meter: CpuMeter
  readonly #usedUs: number

  /** @param nowMs of a clock that is never set back */
  constructor(nowMs: number, meter = THIS_MACHINE) {
    this.#sinceMs = nowMs
    this.#meter = meter
    this.#usedUs = meter.machineUs() - meter.ownUs()
  }

  /** From 0 up to 1, of all processors. */
  share(nowMs: number): number {
    const { machineUs, ownUs, processors } = this.#meter
    const passedUs = (nowMs - this.#sinceMs) * 1_000 * processors
    return Math.max(0, machineUs() - ownUs() - this.#usedUs) / passedUs
  }
}
