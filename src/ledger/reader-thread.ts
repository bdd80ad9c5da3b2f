import { setPriority } from 'node:os'
import { platform } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { runBatches } from '../worker/storage/sqlite-batches.ts'
import { batchesIn, packBody } from './packed-body.ts'
import { openForReading, type SqliteFile } from './sqlite-file.ts'
import { threadPlanSchema, type FromThread, type ThreadCall } from './thread-messages.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'

/** A thread that reads the ledger on a connection of its own, so that no write ever waits for a read. */

/** Lets the writer run first where processors are short. Elsewhere than on Linux, it would apply to the whole process. */
const NICENESS = 5
if (platform === 'linux') setPriority(0, NICENESS)

function serve(file: SqliteFile): void {
  // One read after another: a connection can have only one transaction.
  let reads = Promise.resolve()
  parentPort?.on('message', ({ id, body }: ThreadCall) => {
    reads = reads.then(() => answer(file, { id, body }))
  })
  send({ type: 'ready' })
}

async function answer(file: SqliteFile, { id, body }: ThreadCall): Promise<void> {
  const outcomes = await read(file, body)
  send({ type: 'answer', id, body: outcomes }, outcomes === null ? [] : [outcomes.buffer])
}

async function read(file: SqliteFile, body: Uint8Array): Promise<Uint8Array<ArrayBuffer> | null> {
  const batches = batchesIn(body)
  if (batches === undefined) return null
  const answers = await runBatches(file, batches)
  return packBody(answers.map(({ outcome }) => outcome))
}

function send(message: FromThread, transferred: readonly ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, [...transferred])
}

try {
  serve(openForReading(threadPlanSchema.parse(workerData).path))
} catch (error) {
  send({ type: 'failed', reason: messageOfThrown(error) })
}
