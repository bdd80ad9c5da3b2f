import { SWEEP_AFTER_WRITE_MS } from '../../src/worker/storage/database.ts'

/**
 * A ledger process that never begins the maintenance that is due a minute after a write. That goes by the real time, at
 * which everything has expired that the tests store, and would come in the middle of a test where the machine is busy.
 */
const startTimer = setTimeout
Object.assign(globalThis, {
  setTimeout: (work: () => void, ms: number) =>
    ms < SWEEP_AFTER_WRITE_MS ? startTimer(work, ms) : undefined,
})

await import('../../src/ledger/main.ts')
