import { concatBytes, utf8, type Bytes } from '../../protocol/bytes.ts'
import type { After } from '../batching/deadline-timer.ts'
import type { AttemptClock } from '../provider/attempt-clock.ts'
import { toAttemptFailure } from '../provider/attempt-failure.ts'
import { lostConnection } from '../provider/call.ts'
import { AttemptFailure, SilentFailure } from '../provider/failure.ts'
import type { CarriedCall } from '../routing/carried-calls.ts'
import type { AnswerStream } from '../stream/answer-stream.ts'
import { BrokenStream } from '../stream/broken-stream.ts'
import { openByteReader, type ByteReader } from '../stream/byte-reader.ts'
import { createDigest, type Digest } from '../stream/digest.ts'
import type { JoinWindow } from '../stream/join-window.ts'
import { tailLimitMs } from '../stream/tail-limits.ts'
import type { LastEvents } from './format.ts'
import { JoinedSends } from './joined-sends.ts'
import {
  cutBy,
  cutByLoss,
  type ClientEnd,
  type CommittedStream,
  type StreamEnd,
} from './open-stream.ts'

/** The state of a provider's stream that this worker reads. */
interface ReadStream {
  readonly clock: AttemptClock
  readonly reader: ByteReader
  readonly stream: AnswerStream
  readonly digest: Digest
  readonly rules: RelayRules
}

/** How a provider's stream is relayed. */
export interface RelayRules {
  /** How long the provider may be silent, ms. */
  readonly idleMs: number
  readonly last: LastEvents
  /** The window in which events may wait for later ones. */
  readonly window: JoinWindow
  /** Measures the window. Its timers must be cheap to stop, because nearly all of them are stopped. */
  readonly after: After
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
 * @throws AttemptFailure when the connection is lost or the stream ends too early
 * @throws BrokenStream when the stream is invalid
 */
export async function readToCommit(
  body: ReadableStream<Bytes>,
  stream: AnswerStream,
  clock: AttemptClock,
  rules: RelayRules,
): Promise<CommittedStream> {
  const read = { clock, reader: openByteReader(body), stream, digest: createDigest(), rules }
  const opening = await readOpening(read)
  // Unlimited: before it relays, the router may have to wait for something else, and reads nothing meanwhile.
  clock.enter(undefined)
  return {
    relayTo: async (client, clientDisconnected, carried) => ({
      end: await relay(read, opening, client, clientDisconnected, carried),
      answer: stream,
      providerDigest: () => read.digest.finish(),
      clientDigest: undefined,
      fail: (error) => utf8(rules.last.fail(stream.tail, error)),
    }),
  }
}

async function readOpening({ reader, stream, digest, clock }: ReadStream): Promise<Opening> {
  let used: Bytes | undefined
  for (;;) {
    const { value, done } = await reader.read(used).catch(() => {
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
    used = value
  }
}

/**
 * Relays with one read, one encoding and at most one write at a time. While many streams are relayed, the events of several
 * reads are written together, except those before the first output and after the finish reason.
 */
async function relay(
  read: ReadStream,
  { head, ended }: Opening,
  client: ClientEnd,
  clientDisconnected: AbortSignal,
  carried: CarriedCall,
): Promise<StreamEnd> {
  const { clock, reader, stream, digest, rules } = read
  const sends = new JoinedSends(client, rules.window, rules.after)
  clock.enter(rules.idleMs)
  // Here and below: the time that the client takes is not a delay of the provider.
  clock.pauseTimeout()
  try {
    await sends.sendNow(head)
    clock.progress()
    let used: Bytes | undefined
    for (let over = ended; !over;) {
      const tailMs = tailLimitMs(stream)
      if (tailMs !== undefined) clock.enter(tailMs)
      const { value, done } = await reader.read(used)
      clock.pauseTimeout()
      if (!done) digest.update(value)
      const events = done ? stream.end() : stream.push(value)
      used = value
      over = done
      const isLast = done || stream.finishReason !== undefined
      const sent = isLast ? sends.sendNow(events) : sends.send(events)
      if (sent !== undefined) await sent
      clock.progress()
    }
    return { kind: 'complete' }
  } catch (error) {
    return await endOf(error, read, sends, clientDisconnected, carried)
  } finally {
    sends.leave()
    clock.abort(new AttemptFailure({ kind: 'unavailable' }))
  }
}

/** Classifies an interruption: who ended the stream, and whether the answer was already complete. */
async function endOf(
  cause: unknown,
  { clock, stream }: ReadStream,
  sends: JoinedSends,
  clientDisconnected: AbortSignal,
  carried: CarriedCall,
): Promise<StreamEnd> {
  if (clientDisconnected.aborted) return { kind: 'client_gone' }
  const broken = cause instanceof BrokenStream ? cause : undefined
  // Events that were held back came before the interruption, so they are sent first.
  const sent = sends.sendNow(broken?.output).catch(() => {})
  if (broken !== undefined) {
    await sent
    return cutBy(toAttemptFailure(broken))
  }
  if (stream.finishReason !== undefined) return { kind: 'complete' }
  const failure = lostConnection(clock, false)
  // A lost daemon looks like a provider that breaks off or falls silent, so it is checked.
  const lost = failure instanceof SilentFailure ? await carried.lostThread() : undefined
  return lost === undefined ? cutBy(failure) : cutByLoss(lost)
}
