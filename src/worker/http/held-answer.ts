import { startDeadline } from '../batching/deadline-timer.ts'
import { withBody } from './reply.ts'

/** Smaller answers fit into the buffers between the router and its client, bytes. */
const LARGE_BYTES = 256 * 1024

/** Time that every client has to take an answer, ms, and the minimum rate at which it must take a large one. */
const GRACE_MS = 10_000
const MIN_BYTES_PER_MS = 32

/** An answer, and when the last of it has been taken. */
export interface HeldAnswer {
  readonly answer: Response
  /** Resolves when the client has taken all of it, has left, or was too slow. */
  readonly taken: Promise<void>
}

/**
 * A large answer of known length as its client takes it: until then its memory is in use. It is broken off for a client
 * that takes it at less than 32 KB a second. Undefined for an answer that is small, whose client has left, or whose length is
 * unknown because it is made while it is sent.
 * @param now ms
 * @param client aborts when the client leaves; the runtime does not cancel a body of which it has not asked for anything yet
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
        const leave = () => breakOff('the client has left')
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
