import { parentPort, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { messageOf, type BatchOutcome } from '../worker/storage/batch-outcome.ts'
import type { Statement } from '../worker/storage/database.ts'
import { unpackBatches, type PackedBatches } from '../worker/storage/packed-batches.ts'
import type { FromThread, ThreadCall } from './thread-messages.ts'

/** A call and its batches. */
export interface CallOfBatches {
  readonly id: number
  readonly batches: readonly (readonly Statement[])[]
}

/** Runs the batches of calls and answers them. */
type ServeCalls = (calls: readonly CallOfBatches[]) => Promise<void>

/**
 * Serves the calls that the link passes to this thread. All calls that wait are taken together, up to `atOnce`.
 * @param open opens the database; where it throws, the process reports why and ends
 */
export async function serveThread(atOnce: number, open: () => Promise<ServeCalls>): Promise<void> {
  try {
    const serve = await open()
    // One round after another: a round that waits must not be overtaken by the next.
    let rounds = Promise.resolve()
    const port = parentPort
    port?.on('message', (first: ThreadCall) => {
      const calls = [first, ...waitingCalls(port, atOnce - 1)]
      const understood = calls.flatMap((call) => batchesIn(call) ?? [])
      rounds = rounds.then(() => serve(understood))
    })
    send({ type: 'ready' })
  } catch (error) {
    send({ type: 'failed', reason: messageOf(error) })
  }
}

/** What came while this thread was busy. */
function waitingCalls(port: MessagePort, atMost: number): readonly ThreadCall[] {
  const calls: ThreadCall[] = []
  while (calls.length < atMost) {
    const next: { message: ThreadCall } | undefined = receiveMessageOnPort(port)
    if (next === undefined) break
    calls.push(next.message)
  }
  return calls
}

/** Answers a call with the outcome of each of its batches. */
export function answerCall(id: number, outcomes: readonly BatchOutcome[]): void {
  const body = new TextEncoder().encode(JSON.stringify(outcomes))
  send({ type: 'answer', id, body }, [body.buffer])
}

function batchesIn({ id, body }: ThreadCall): CallOfBatches | undefined {
  try {
    // The worker is the same program, behind a pinned certificate.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const packed = JSON.parse(new TextDecoder().decode(body)) as PackedBatches
    return { id, batches: unpackBatches(packed) }
  } catch {
    send({ type: 'answer', id, body: null })
    return undefined
  }
}

function send(message: FromThread, transferred: readonly ArrayBuffer[] = []): void {
  // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message, [...transferred])
}
