import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { lostConnection, type ProviderReply } from './call.ts'
import { AttemptFailure } from './failure.ts'

/** Far above any real answer; a provider that sends more is broken, and its parsing would hold everybody up. */
const WHOLE_BODY_BYTES = 16 * 1024 * 1024

/** What is counted at a time of a body of undeclared length. */
const STEP_BYTES = 64 * 1024

type WholeReply = Pick<ProviderReply, 'body' | 'declaredBytes'>

/**
 * The whole body of a provider's answer. Its memory comes out of what bodies of requests and answers share.
 * @throws AttemptFailure when it breaks off or never ends; the clock's reason when that ends the attempt; what
 * `takeMemory` throws when there is none
 */
export async function readWholeBody(
  reply: WholeReply,
  clock: AttemptClock,
  takeMemory: (bytes: number) => void,
): Promise<Bytes> {
  const { body, declaredBytes } = reply
  if (declaredBytes === undefined) return collect(body, clock, takeMemory)
  if (declaredBytes > WHOLE_BODY_BYTES) {
    await body.cancel()
    throw new AttemptFailure({ kind: 'unclassified' })
  }
  await takeOrCancel(body, declaredBytes, takeMemory)
  // HTTP holds a body to its declared length. In workerd this is one turn of the event loop, a loop is many.
  const bytes = await new Response(body).arrayBuffer().catch(() => {
    throw lostConnection(clock, false)
  })
  return new Uint8Array(bytes)
}

async function takeOrCancel(
  body: Pick<ReadableStream, 'cancel'>,
  bytes: number,
  takeMemory: (bytes: number) => void,
): Promise<void> {
  try {
    takeMemory(bytes)
  } catch (error) {
    await body.cancel()
    throw error
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
      await takeOrCancel(reader, more, takeMemory)
      taken += more
    }
    if (length > WHOLE_BODY_BYTES) {
      await reader.cancel()
      throw new AttemptFailure({ kind: 'unclassified' })
    }
  }
}
