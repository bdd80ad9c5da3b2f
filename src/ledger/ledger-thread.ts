import { Worker } from 'node:worker_threads'
import type { CallKind, FromThread, ThreadCall } from './thread-messages.ts'

/** The answer to a call, JSON; null: it was not understood, or a fold failed. */
export type ThreadAnswer = Uint8Array | null

const NOTHING = new Uint8Array()

/** A thread with a connection to the ledger. */
export interface LedgerThread {
  /** Calls that have no answer yet. */
  readonly waiting: number
  call(kind: CallKind, body?: Uint8Array): Promise<ThreadAnswer>
  /** Ends it. What it commits right now is committed or not; calls without an answer get none. */
  close(): Promise<void>
}

/**
 * Starts a thread on a database.
 * @param died called when the thread ends by an error of the program; the process must end, too
 * @throws Error with the reason when the database cannot be opened
 */
export async function startLedgerThread(
  module: URL,
  path: string,
  died: (error: Error) => void,
): Promise<LedgerThread> {
  const thread = new Worker(module, { workerData: { path } })
  const ready = Promise.withResolvers<void>()
  const waiting = new Map<number, (answer: ThreadAnswer) => void>()
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
    call: (kind, body = NOTHING) =>
      new Promise((resolve) => {
        // A buffer may be a part of a larger one, which would be copied with it.
        const own = Uint8Array.from(body)
        const call: ThreadCall = { id: calls++, kind, body: own }
        waiting.set(call.id, resolve)
        thread.postMessage(call, [own.buffer])
      }),
    close: async () => void (await thread.terminate()),
  }
}
