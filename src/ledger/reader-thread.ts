import { workerData } from 'node:worker_threads'
import { unpackBatches } from '../worker/storage/packed-batches.ts'
import { runBatches } from '../worker/storage/sqlite-batches.ts'
import { openForReading } from './sqlite-file.ts'
import { threadPlanSchema } from './thread-messages.ts'
import { answerCall, contentOf, serveThread } from './thread-port.ts'

/** A thread that reads the ledger on a connection of its own, so that no write ever waits for a read. */

const { path } = threadPlanSchema.parse(workerData)

await serveThread(1, async () => {
  const file = openForReading(path)
  return async (calls) => {
    for (const call of calls) {
      const batches = contentOf(call, unpackBatches)
      if (batches === undefined) continue
      const answers = await runBatches(file, batches)
      answerCall(
        call,
        answers.map(({ outcome }) => outcome),
      )
    }
  }
})
