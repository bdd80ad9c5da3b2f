import { parentPort, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { messageOf } from '../worker/storage/batch-outcome.ts'
import type { FromThread, ThreadCall } from './thread-messages.ts'

/** Carries out calls and answers them. */
type ServeCalls = (calls: readonly ThreadCall[]) => Promise<void>

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
      rounds = rounds.then(() => serve(calls))
    })
    send({ type: 'ready' })
  } catch (error) {
    send({ type: 'failed', reason: messageOf(error) })
  }
}

/** The content of a call; undefined, and the call is answered, where it is malformed. */
export function contentOf<Content>(
  { id, body }: ThreadCall,
  unpack: (packed: never) => Content,
): Content | undefined {
  try {
    // The worker is the same program, behind a pinned certificate.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return unpack(JSON.parse(new TextDecoder().decode(body)) as never)
  } catch {
    send({ type: 'answer', id, body: null })
    return undefined
  }
}

/** Answers a call with JSON. */
export function answerCall({ id }: ThreadCall, answer: unknown): void {
  const body = new TextEncoder().encode(JSON.stringify(answer))
  send({ type: 'answer', id, body }, [body.buffer])
}

/** Answers that a call failed. */
export function refuseCall({ id }: ThreadCall): void {
  send({ type: 'answer', id, body: null })
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

function send(message: FromThread, transferred: readonly ArrayBuffer[] = []): void {
  // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message, [...transferred])
}
