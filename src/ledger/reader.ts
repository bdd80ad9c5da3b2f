import { Worker } from 'node:worker_threads'
import type { FromThread, ThreadCall } from './thread-messages.ts'

/** The answer to a call, JSON; null: the body was malformed, or the tables could not be brought up to date. */
export type LedgerAnswer = Uint8Array | null

/** A thread that only reads the ledger. */
export interface Reader {
  /** Number of calls that have no answer yet. */
  readonly waiting: number
  /** Runs packed batches that only read. */
  read(body: Uint8Array): Promise<LedgerAnswer>
  /** Ends the thread; calls without an answer never resolve. */
  close(): Promise<void>
}

const READER_THREAD = new URL('./reader-thread.ts', import.meta.url)

/**
 * Starts a thread that reads a database.
 * @param died called when an uncaught error ends the thread; the process must then end, too
 * @throws Error with the reason when the database cannot be opened
 */
export async function startReader(path: string, died: (error: Error) => void): Promise<Reader> {
  const thread = new Worker(READER_THREAD, { workerData: { path } })
  const ready = Promise.withResolvers<void>()
  const waiting = new Map<number, (answer: LedgerAnswer) => void>()
  let calls = 0
  const receive = {
    ready: () => ready.resolve(),
    failed: ({ reason }: Extract<FromThread, { type: 'failed' }>) =>
      ready.reject(new Error(reason)),
    answer: ({ id, body }: Extract<FromThread, { type: 'answer' }>) => {
      waiting.get(id)?.(body)
      waiting.delete(id)
    },
  }
  thread.on('message', (message: FromThread) => {
    if (message.type === 'answer') receive.answer(message)
    else if (message.type === 'failed') receive.failed(message)
    else receive.ready()
  })
  thread.on('error', (error: Error) => {
    ready.reject(error)
    died(error)
  })
  await ready.promise
  return {
    get waiting() {
      return waiting.size
    },
    read: (body) =>
      new Promise((resolve) => {
        // The body may be a view of a larger buffer, so only a copy can be transferred.
        const own = Uint8Array.from(body)
        const call: ThreadCall = { id: calls++, body: own }
        waiting.set(call.id, resolve)
        thread.postMessage(call, [own.buffer])
      }),
    close: async () => void (await thread.terminate()),
  }
}
