import type { Database } from './database.ts'

/**
 * One bounded round of a database's maintenance, and when the next one is due (ms since the epoch; undefined: none is
 * scheduled). The engines only run it.
 */
export type Sweep = (db: Database, now: number) => Promise<{ readonly next: number | undefined }>

/** How long after a write the next round runs at the latest. */
export const SWEEP_AFTER_WRITE_MS = 60_000

/** The shortest pause between two rounds, so that a backlog is worked off without starving requests. */
export const SWEEP_PAUSE_MS = 250
