import { sweepAll } from '../settle/sweep.ts'
import type { Storage } from '../storage/database.ts'

/** The result of maintenance. */
export interface MaintenanceReport {
  /** Reservations that were released. */
  readonly released: number
  /** Receipt bodies that were overwritten because their retention period has ended. */
  readonly expired: number
  /** Overwritten bodies that were cleared. */
  readonly cleared: number
}

/**
 * Sweeps until nothing is due at `now`. Data that routers still use at the time `clock` is kept (both ms since the epoch).
 */
export async function maintain(
  storage: Storage,
  now: number,
  clock: number,
): Promise<MaintenanceReport> {
  const { released, expired, cleared } = await sweepAll(storage.directory(), now, { clock })
  return { released, expired, cleared }
}
