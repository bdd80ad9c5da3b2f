import { startDeadline } from '../batching/deadline-timer.ts'
import { withBody } from './reply.ts'

/** Smaller answers fit into the buffers between the router and its client, bytes. */
const LARGE_BYTES = 256 * 1024

/**
 * The time that every client has to read an answer, ms, and the minimum rate at which it must read a large one, bytes per
 * ms.
 */
const GRACE_MS = 10_000
const MIN_BYTES_PER_MS = 32

/** An answer, with a promise for when the client has read it. */
export interface HeldAnswer {
  readonly answer: Response
  /** Resolves when the client has read all of it, has disconnected, or was too slow. */
  readonly taken: Promise<void>
}

/**
 * Wraps a large answer of known length, whose memory is in use until the client has read it. The connection is aborted if
 * the client takes longer than ten seconds plus one for every 32 KB.
 * @param now ms since the epoch
 * @param client aborts when the client disconnects; the runtime does not cancel a body that it has not started to read
 * @returns undefined for an answer that is small, whose client has disconnected, or whose length is unknown because it is
 *   generated while it is sent
 */
export function heldAnswer(
  answer: Response,
  now: () => number,
  client: AbortSignal,
): HeldAnswer | undefined {
  const length = Number(answer.headers.get('content-length'))
  // The length is compared first, because reading `answer.body` makes the runtime create a stream.
  if (length <= LARGE_BYTES || answer.body === null || client.aborted) return undefined
  const reader = answer.body.getReader({ mode: 'byob' })
  const { promise: taken, resolve } = Promise.withResolvers<void>()
  const ended = new AbortController()
  const end = () => {
    ended.abort()
    resolve()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const breakOff = (why: string) => {
          controller.error(new Error(why))
          void reader.cancel().catch(() => {})
          end()
        }
        const tooLate = () => breakOff('the client takes its answer too slowly')
        const deadline = startDeadline(GRACE_MS + length / MIN_BYTES_PER_MS, now, tooLate)
        const leave = () => breakOff('the client has disconnected')
        client.addEventListener('abort', leave, { signal: ended.signal })
        ended.signal.addEventListener('abort', () => deadline.stop())
      },
      pull: async (controller) => {
        const { value, done } = await reader.read(new Uint8Array(LARGE_BYTES))
        if (!done) return controller.enqueue(value)
        controller.close()
        end()
      },
      cancel: async (reason) => {
        end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  return { answer: withBody(answer, body, new Headers(answer.headers)), taken }
}
