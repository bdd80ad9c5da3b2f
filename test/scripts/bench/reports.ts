import type { Report, SystemReport } from '../../../scripts/bench/report.ts'

/** One window of a report. */
export type Window = SystemReport['windows'][string][number]

const WINDOW: Window = {
  perSecond: 1_000,
  p50Ms: 1,
  p99Ms: 2,
  firstDeltaP50Ms: 3,
  framesPerSecond: 0,
  gapP50Ms: 0,
  gapP99Ms: 0,
  cpuUs: 100,
  cpuUsBy: { workerd: 100 },
  residentMib: 50,
  invalid: null,
}

/** A window in which everything is as it should be, apart from the change. */
export function windowWith(change: Partial<Window>): Window {
  return { ...WINDOW, ...change }
}

/** A system with the same single window of three kinds. */
export function system(
  name: string,
  change: Partial<Window>,
  memory: SystemReport['memory'] = null,
): SystemReport {
  const window = windowWith(change)
  const windows = { 'whole-1': [window], 'whole-64': [window], 'first-delta': [window] }
  return { name, windows, memory, sizesMs: {} }
}

export function report(systems: readonly SystemReport[]): Report {
  const machine = { cores: 2, cpu: 'one', loadBefore: 0, loadAfter: 0 }
  const of = { takenAt: '2026-11-20T22:00:00Z', command: 'npm run bench', machine }
  return { ...of, systems: [...systems], skipped: [] }
}
