import { concatBytes, utf8, type Bytes } from '../../protocol/bytes.ts'
import type { AttemptClock } from '../provider/attempt-clock.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { lostConnection } from '../provider/call.ts'
import { AttemptFailure, SilentFailure } from '../provider/failure.ts'
import type { CarriedCall } from '../routing/carried-calls.ts'
import type { AnswerStream } from '../stream/answer-stream.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import { createDigest, type Digest } from '../stream/digest.ts'
import { tailLimitMs } from '../stream/tail-limits.ts'
import type { LastEvents } from './format.ts'
import {
  cutBy,
  cutByLoss,
  type ClientEnd,
  type CommittedStream,
  type StreamEnd,
} from './open-stream.ts'

/** A provider's stream that this worker reads. */
interface ReadStream {
  readonly clock: AttemptClock
  readonly reader: ReadableStreamDefaultReader<Uint8Array>
  readonly stream: AnswerStream
  readonly digest: Digest
  readonly idleMs: number
}

/** The opening events held back until the commit point, ready for the client. */
interface Opening {
  readonly head: Bytes
  /** Whether the provider's body has already ended. */
  readonly ended: boolean
}

/**
 * Reads a provider's stream up to its commit point. Opening events are held back, so a failure here is invisible to the
 * client.
 * @throws AttemptFailure
 * @throws BrokenStream
 */
export async function readToCommit(
  body: ReadableStream<Uint8Array>,
  stream: AnswerStream,
  clock: AttemptClock,
  idleMs: number,
  last: LastEvents,
): Promise<CommittedStream> {
  const read = { clock, reader: body.getReader(), stream, digest: createDigest(), idleMs }
  const opening = await readOpening(read)
  // The router may have to wait for something before it relays, and reads nothing meanwhile.
  clock.enter(undefined)
  return {
    isWritten: false,
    relayTo: async (client, clientDisconnected, carried) => ({
      end: await relay(read, opening, client, clientDisconnected, carried),
      answer: stream,
      providerDigest: () => read.digest.finish(),
      clientDigest: undefined,
      fail: (error) => utf8(last.fail(stream.tail, error)),
    }),
  }
}

async function readOpening({ reader, stream, digest, clock }: ReadStream): Promise<Opening> {
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw lostConnection(clock, false)
    })
    if (done) {
      const head = stream.end()
      if (!stream.committed) throw new AttemptFailure({ kind: 'unclassified' })
      return { head, ended: true }
    }
    digest.update(value)
    const head = stream.push(value)
    if (stream.committed) return { head: concatBytes(head), ended: false }
  }
}

/** One read, one encoding and one write at a time, so that nothing is buffered here. */
async function relay(
  read: ReadStream,
  { head, ended }: Opening,
  client: ClientEnd,
  clientDisconnected: AbortSignal,
  carried: CarriedCall,
): Promise<StreamEnd> {
  const { clock, reader, stream, digest, idleMs } = read
  clock.enter(idleMs)
  // As with all that follows, the time that the client takes is not the provider's.
  clock.pauseTimeout()
  try {
    await client.send(head)
    clock.progress()
    for (let over = ended; !over;) {
      const tailMs = tailLimitMs(stream)
      if (tailMs !== undefined) clock.enter(tailMs)
      const { value, done } = await reader.read()
      clock.pauseTimeout()
      if (value) digest.update(value)
      await client.send(done ? stream.end() : stream.push(value))
      clock.progress()
      over = done
    }
    return { kind: 'complete' }
  } catch (error) {
    return await endOf(error, read, client, clientDisconnected, carried)
  } finally {
    clock.abort(new AttemptFailure({ kind: 'unavailable' }))
  }
}

/** Classifies an interruption: who ended the stream, and whether the answer was complete by then. */
async function endOf(
  cause: unknown,
  { clock, stream }: ReadStream,
  client: ClientEnd,
  clientDisconnected: AbortSignal,
  carried: CarriedCall,
): Promise<StreamEnd> {
  if (clientDisconnected.aborted) return { kind: 'client_gone' }
  if (cause instanceof BrokenStream) {
    await client.send(cause.output).catch(() => {})
    return cutBy(toAttemptFailure(cause))
  }
  if (stream.finishReason !== undefined) return { kind: 'complete' }
  const failure = lostConnection(clock, false)
  // A daemon that is lost looks no different from a provider that breaks off or falls silent.
  const lost = failure instanceof SilentFailure ? await carried.lostThread() : undefined
  return lost === undefined ? cutBy(failure) : cutByLoss(lost)
}
