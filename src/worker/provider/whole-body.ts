import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { lostConnection, type ProviderReply } from './call.ts'
import { AttemptFailure } from './failure.ts'

/** Far above any real answer; a provider that sends more is broken. */
const WHOLE_BODY_BYTES = 32 * 1024 * 1024

type WholeReply = Pick<ProviderReply, 'body' | 'declaredBytes'>

/**
 * The whole body of a provider's answer.
 * @throws AttemptFailure when it breaks off or never ends; the clock's reason when that ends the attempt
 */
export async function readWholeBody(reply: WholeReply, clock: AttemptClock): Promise<Bytes> {
  const { body, declaredBytes } = reply
  if (declaredBytes === undefined) return collect(body, clock)
  if (declaredBytes > WHOLE_BODY_BYTES) {
    await body.cancel()
    throw new AttemptFailure({ kind: 'unclassified' })
  }
  // HTTP holds a body to its declared length. In workerd this is one turn of the event loop, a loop is many.
  const bytes = await new Response(body).arrayBuffer().catch(() => {
    throw lostConnection(clock, false)
  })
  return new Uint8Array(bytes)
}

async function collect(body: ReadableStream<Uint8Array>, clock: AttemptClock): Promise<Bytes> {
  const parts: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw lostConnection(clock, false)
    })
    if (done) return concatBytes(...parts)
    parts.push(value)
    length += value.length
    if (length > WHOLE_BODY_BYTES) {
      await reader.cancel()
      throw new AttemptFailure({ kind: 'unclassified' })
    }
  }
}
