import type { Random } from './auth/api-key.ts'
import type { ChunkSwitch } from './chunks/chunk-switch.ts'
import type { ProbeConnect } from './provider/connect-watch.ts'
import type { LocalLedger } from './storage/local-ledger.ts'

/** The clock, randomness and platform calls; passed in so that tests control them. */
export interface RuntimeDeps {
  readonly now: () => number
  readonly newId: () => string
  readonly randomBytes: Random
  readonly probeConnect: ProbeConnect
  /** Keeps the current request alive until this work has ended. */
  readonly keepAlive: (work: Promise<unknown>) => void
  readonly localLedger?: LocalLedger | undefined
  readonly chunkSwitch?: ChunkSwitch | undefined
}
