import { workerData } from 'node:worker_threads'
import { EmbeddedLedger } from '../worker/embedded/embedded-ledger.ts'
import { sweep } from '../worker/settle/sweep.ts'
import { migrate } from '../worker/storage/migrate.ts'
import { MIGRATIONS } from '../worker/storage/migrations.ts'
import { runBatches, sqliteDatabase } from '../worker/storage/sqlite-batches.ts'
import type { SyncStore } from '../worker/storage/sync-store.ts'
import { lockLedger } from './ledger-lock.ts'
import { openForWriting } from './sqlite-file.ts'
import { SweepTimer } from './sweep-timer.ts'
import { threadPlanSchema } from './thread-messages.ts'
import { answerCall, serveThread } from './thread-port.ts'

/**
 * The one thread that writes the ledger. What all workers sent while it committed is its next transaction, so that they
 * wait for the disk together.
 */

const { path } = threadPlanSchema.parse(workerData)

/** A transaction delays those who come after it; a call of a worker is at most 4 MiB of them. */
const MAX_CALLS = 64

/** Brings into the tables what the other embedded engine, from which the file was moved, left in its journal. */
async function foldJournal(file: SyncStore): Promise<void> {
  const embedded = new EmbeddedLedger(file, { later: () => {} })
  await embedded.open()
  await embedded.fold()
}

await serveThread(MAX_CALLS, async () => {
  lockLedger(path)
  const file = openForWriting(path)
  const database = sqliteDatabase(file)
  await migrate(database, MIGRATIONS)
  await foldJournal(file)
  const timer = new SweepTimer(() => sweep(database, Date.now()), Date.now)
  timer.begin()
  return async (calls) => {
    const answers = await runBatches(
      file,
      calls.flatMap(({ batches }) => batches),
    )
    if (answers.some(({ wrote }) => wrote)) timer.written()
    let next = 0
    for (const { id, batches } of calls) {
      const own = answers.slice(next, next + batches.length)
      next += batches.length
      answerCall(
        id,
        own.map(({ outcome }) => outcome),
      )
    }
  }
})
