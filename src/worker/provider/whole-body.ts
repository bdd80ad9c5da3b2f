import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { lostConnection, streamOf, type ProviderReply } from './call.ts'
import { AttemptFailure } from './failure.ts'

/** Far above any real answer. A larger one is invalid, and parsing it would block all requests of the thread. */
const WHOLE_BODY_BYTES = 16 * 1024 * 1024

/** Step in which memory is reserved for a body of undeclared length. */
const STEP_BYTES = 64 * 1024

type WholeReply = Pick<ProviderReply, 'response' | 'declaredBytes'>

/**
 * The whole body of a provider's answer. Its memory is taken from the share for request and answer bodies.
 * @throws AttemptFailure when it is cut off or too large; the clock's reason when that ends the attempt; the error of
 *   `takeMemory` when there is no memory
 */
export async function readWholeBody(
  reply: WholeReply,
  clock: AttemptClock,
  takeMemory: (bytes: number) => void,
): Promise<Bytes> {
  const { response, declaredBytes } = reply
  if (declaredBytes === undefined) return collect(streamOf(reply), clock, takeMemory)
  if (declaredBytes > WHOLE_BODY_BYTES) {
    await response.body?.cancel()
    throw new AttemptFailure({ kind: 'unclassified' })
  }
  const refused = refusalOf(takeMemory, declaredBytes)
  if (refused !== undefined) {
    await response.body?.cancel()
    throw refused.error
  }
  // HTTP enforces the declared length. In workerd this takes one turn of the event loop, a read loop many.
  const bytes = await response.arrayBuffer().catch(() => {
    throw lostConnection(clock, false)
  })
  return new Uint8Array(bytes)
}

/** Why there is no memory; undefined where it was taken. */
function refusalOf(
  takeMemory: (bytes: number) => void,
  bytes: number,
): { readonly error: unknown } | undefined {
  try {
    takeMemory(bytes)
    return undefined
  } catch (error) {
    return { error }
  }
}

async function collect(
  body: ReadableStream<Uint8Array>,
  clock: AttemptClock,
  takeMemory: (bytes: number) => void,
): Promise<Bytes> {
  const parts: Uint8Array[] = []
  let length = 0
  let taken = 0
  const reader = body.getReader()
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw lostConnection(clock, false)
    })
    if (done) return concatBytes(...parts)
    parts.push(value)
    length += value.length
    if (length > taken) {
      const more = Math.max(STEP_BYTES, length - taken)
      const refused = refusalOf(takeMemory, more)
      if (refused !== undefined) {
        await reader.cancel()
        throw refused.error
      }
      taken += more
    }
    if (length > WHOLE_BODY_BYTES) {
      await reader.cancel()
      throw new AttemptFailure({ kind: 'unclassified' })
    }
  }
}
