import { setPriority } from 'node:os'
import { platform } from 'node:process'
import { workerData } from 'node:worker_threads'
import { unpackBatches } from '../worker/storage/packed-batches.ts'
import { runBatches } from '../worker/storage/sqlite-batches.ts'
import { openForReading } from './sqlite-file.ts'
import { threadPlanSchema } from './thread-messages.ts'
import { answerCall, contentOf, serveThread } from './thread-port.ts'

/** A thread that reads the ledger on a connection of its own, so that no write ever waits for a read. */

/** Where processors are short, the writer comes first. Elsewhere than on Linux it would apply to the whole process. */
const NICENESS = 5
if (platform === 'linux') setPriority(0, NICENESS)

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
