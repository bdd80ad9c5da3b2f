import type { DaemonBoot, Platform } from '../protocol/boot.ts'
import { simulatedMachine, type Machine } from './snp/machine.ts'

/** The machine that the supervisor says this is. `now` in milliseconds. */
export function openMachine(boot: DaemonBoot, now: () => number): Machine {
  return MACHINES[boot.platform](boot, now)
}

const MACHINES: Readonly<Record<Platform, typeof openMachine>> = {
  simulated: (boot, now) => simulatedMachine(boot.release?.simulated ?? null, now()),
  'configfs-tsm': () => {
    throw new Error('not implemented')
  },
}
