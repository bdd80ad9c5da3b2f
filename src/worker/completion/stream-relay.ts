import { ApiError } from '../http/errors.ts'
import { lostConnection } from '../provider/call.ts'
import { AttemptFailure, type Failure } from '../provider/failure.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import type { ClientStream } from './client-stream.ts'
import type { OpenStream } from './stream-attempt.ts'

/** How a committed stream ended. */
export type StreamEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'client_gone' }
  | { readonly kind: 'cut'; readonly failure: Failure; readonly error: ApiError }

/** Time limit after the finish reason: only the provider's usage and its terminator are still to come. */
const TAIL_MS = 5_000

/** Time limit after usage as well: only the terminator, which the digest of the provider's bytes should include. */
const LAST_BYTES_MS = 1_000

/**
 * Relays a committed stream to its end, one read, one encoding and one write at a time, so that a slow client slows
 * the provider down and nothing is buffered here. An answer is complete if and only if it has a finish reason.
 */
export async function relayStream(
  open: OpenStream,
  client: ClientStream,
  clientDisconnected: AbortSignal,
): Promise<StreamEnd> {
  const { clock, reader, stream } = open
  try {
    await client.send(open.head)
    let ended = open.ended
    while (!ended) {
      enterTail(open)
      const { value, done } = await reader.read()
      clock.pauseTimeout()
      if (value) open.responseDigest.update(value)
      await client.send(done ? stream.end() : stream.push(value))
      clock.progress()
      ended = done
    }
    return { kind: 'complete' }
  } catch (error) {
    return await endOf(error, open, client, clientDisconnected)
  } finally {
    clock.abort(new AttemptFailure({ kind: 'unavailable' }))
  }
}

/** Classifies an interruption: who ended the stream, and whether the answer was complete by then. */
async function endOf(
  cause: unknown,
  { clock, stream }: OpenStream,
  client: ClientStream,
  clientDisconnected: AbortSignal,
): Promise<StreamEnd> {
  if (clientDisconnected.aborted) return { kind: 'client_gone' }
  if (cause instanceof BrokenStream) {
    await client.send(cause.output).catch(() => {})
    return cutBy(toAttemptFailure(cause))
  }
  return stream.finishReason === undefined
    ? cutBy(lostConnection(clock, false))
    : { kind: 'complete' }
}

function enterTail({ clock, stream }: OpenStream): void {
  if (stream.done) clock.enter(LAST_BYTES_MS)
  else if (stream.finishReason !== undefined) clock.enter(TAIL_MS)
}

function cutBy(cause: unknown): StreamEnd {
  const failure = cause instanceof AttemptFailure ? cause.failure : { kind: 'timeout' as const }
  const error =
    failure.kind === 'timeout'
      ? new ApiError('upstream_timeout', 'The provider took too long in the middle of its answer.')
      : new ApiError('bad_gateway', 'The provider broke off its answer.')
  return { kind: 'cut', failure, error }
}
