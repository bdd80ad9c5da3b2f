import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerRoom } from './answer-room.ts'
import type { AttemptClock } from './attempt-clock.ts'
import { lostConnection, streamOf, type ProviderReply } from './call.ts'

type WholeReply = Pick<ProviderReply, 'response' | 'declaredBytes'>

/**
 * Reads the whole body of a provider's answer.
 * @throws AttemptFailure when it is cut off
 * @throws unknown the clock's reason when the clock ends the attempt, or the room's error where it does not take the answer
 */
export async function readWholeBody(
  reply: WholeReply,
  clock: AttemptClock,
  room: Pick<AnswerRoom, 'hold'>,
): Promise<Bytes> {
  const { response, declaredBytes } = reply
  if (declaredBytes === undefined) return collect(streamOf(reply), clock, room)
  const refused = refusalOf(room, declaredBytes, true)
  if (refused !== undefined) {
    await response.body?.cancel()
    throw refused.error
  }
  // HTTP enforces the declared length. In workerd this takes one event loop turn; a read loop takes many.
  const bytes = await response.arrayBuffer().catch(() => {
    throw lostConnection(clock, false)
  })
  return new Uint8Array(bytes)
}

/** Reserves room. Returns the error where there is none. */
function refusalOf(
  room: Pick<AnswerRoom, 'hold'>,
  bytes: number,
  declared: boolean,
): { readonly error: unknown } | undefined {
  try {
    room.hold(bytes, declared)
    return undefined
  } catch (error) {
    return { error }
  }
}

async function collect(
  body: ReadableStream<Uint8Array>,
  clock: AttemptClock,
  room: Pick<AnswerRoom, 'hold'>,
): Promise<Bytes> {
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
    const refused = refusalOf(room, length, false)
    if (refused !== undefined) {
      await reader.cancel()
      throw refused.error
    }
  }
}
