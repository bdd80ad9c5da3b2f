import { Worker } from 'node:worker_threads'
import type { FromThread, ThreadCall } from './thread-messages.ts'

/** The answer to a call, JSON; null: it was not understood, or what it needed failed. */
export type LedgerAnswer = Uint8Array | null

/** A thread that reads the ledger. */
export interface Reader {
  /** Calls that have no answer yet. */
  readonly waiting: number
  /** Runs packed batches that only read. */
  read(body: Uint8Array): Promise<LedgerAnswer>
  /** Ends it; calls without an answer get none. */
  close(): Promise<void>
}

const READER_THREAD = new URL('./reader-thread.ts', import.meta.url)

/**
 * Starts a thread that reads a database.
 * @param died called when the thread ends by an error of the program; the process must end, too
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
        // A buffer may be a part of a larger one, which would be copied with it.
        const own = Uint8Array.from(body)
        const call: ThreadCall = { id: calls++, body: own }
        waiting.set(call.id, resolve)
        thread.postMessage(call, [own.buffer])
      }),
    close: async () => void (await thread.terminate()),
  }
}
