import { isPlainValue, SMALL_BODY_BYTES, type AnswerHead } from '../../protocol/link-messages.ts'
import type { MessageCaller } from '../link-server/message-caller.ts'
import type { EventMemory } from './event-memory.ts'
import { Exchange } from './exchange.ts'
import { gather, type Begun, type GatherLimits } from './gather.ts'
import { endToEnd, headerText, requestHeaders, type HeaderValues } from './headers.ts'
import { evidenceHeader, type OpenConnection } from './open-connection.ts'
import type { WholeAnswerReceiver } from './whole-answer-call.ts'
import type { ProviderAnswer } from './provider-answer.ts'
import { isEventStream } from './relay-stream.ts'
import { chunkHeaders, failureOf } from './relay.ts'
import type { WaitingAnswers } from './waiting-answers.ts'

export interface MessageRelayParts {
  /** Below the path of the provider's `base_url`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly caller: MessageCaller
  /** The connection to the provider; nothing was sent on it yet. */
  readonly open: OpenConnection
  readonly waiting: WaitingAnswers
  /** For answers that are gathered. */
  readonly memory: EventMemory
  /**
   * Present where the worker has asked for the chunks of the client's stream: writes them, or returns false where this
   * answer does not allow that.
   */
  readonly sendChunks?: ((answer: ProviderAnswer) => boolean) | undefined
  /** Present where the worker has asked for the client's complete answer. */
  readonly writeWholeAnswer?: ((answer: Buffer, awaits: WholeAnswerReceiver) => void) | undefined
}

/**
 * Sends the request of a message to the provider. A small answer is returned as a message, either unchanged or in the
 * client's format; any other answer waits until the worker reads it over HTTP. A caller that disconnects ends the call.
 * @throws LinkError when no answer came, or none that can be passed on
 */
export async function relayMessage(parts: MessageRelayParts): Promise<void> {
  const { headers, body, caller, open, path } = parts
  const { connection, pool, basePath } = open
  const exchange = new Exchange(
    (answer) => passOn(answer, parts),
    () => pool.release(connection),
  )
  caller.onceDisconnected(() => exchange.abandon(new Error('the caller has disconnected')))
  const length = String(body.length)
  const outgoing = {
    method: 'POST',
    path: `${basePath}${path}`,
    headers: { ...requestHeaders(headers), 'content-length': length },
    body,
  }
  connection.send(outgoing, exchange)
  await exchange.begun.catch((cause: unknown) => {
    throw failureOf(cause)
  })
}

function passOn(answer: ProviderAnswer, parts: MessageRelayParts): void {
  const { caller, open, waiting, memory, sendChunks } = parts
  if (sendChunks?.(answer) === true) {
    return caller.answer({ status: 200, headers: chunkHeaders(open, 'there') }, NOTHING)
  }
  const framing = framingOf(answer.headers)
  const head = framing && smallHead(answer, evidenceHeader(open))
  if (head === undefined) return caller.wait(waiting.keep(answer, open))
  const outcome = {
    whole: (body: Buffer) => answerWhole(head, body, parts),
    brokenOff: (part: Buffer) => caller.breakOff(head, part),
    tooMuch: (begun: Begun) => caller.wait(waiting.keep(answer, open, begun)),
  }
  const limits = framing === 'chunks' ? CHUNKED : undefined
  gather(answer, outcome, memory.forAnswer(open.channel.provider), limits)
}

const NOTHING = new Uint8Array(0)

function answerWhole(
  head: AnswerHead,
  body: Buffer,
  { caller, writeWholeAnswer }: MessageRelayParts,
) {
  const asItIs = () => caller.answer(withLength(head, body.length), body)
  if (head.status !== 200 || writeWholeAnswer === undefined) return asItIs()
  writeWholeAnswer(body, {
    hasDisconnected: () => caller.hasDisconnected,
    tell: (written) => {
      if (written === undefined) return asItIs()
      const own = withLength(head, written.body.length)
      caller.answer({ ...own, whole: written.record }, written.body)
    },
  })
}

/**
 * An answer with chunked coding that ends within these limits counts as small, too. The caller asked for no stream, so
 * it needs nothing before the end.
 */
const CHUNKED: GatherLimits = { bytes: SMALL_BODY_BYTES, ms: 50 }

/** How the end of a small answer is recognised; undefined where the answer is large or may be a stream. */
function framingOf(headers: HeaderValues): 'length' | 'chunks' | undefined {
  const length = headerText(headers, 'content-length')
  if (length !== undefined) {
    return /^\d{1,6}$/.test(length) && Number(length) <= SMALL_BODY_BYTES ? 'length' : undefined
  }
  const isChunked = headerText(headers, 'transfer-encoding')?.trim().toLowerCase() === 'chunked'
  return isChunked && !isEventStream(headers) ? 'chunks' : undefined
}

function withLength({ status, headers }: AnswerHead, length: number): AnswerHead {
  return { status, headers: { ...headers, 'content-length': String(length) } }
}

/** Statuses whose answers have no body, whatever their headers say. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/** Most characters in the headers of an answer that becomes a message; an answer with more is passed on over HTTP. */
const MAX_HEADERS_CHARS = 8 * 1024

/**
 * The head of an answer that can become a message; undefined where it has no body, a content coding, or headers that a
 * message cannot hold.
 */
function smallHead(
  { statusCode: status, headers }: ProviderAnswer,
  ofDaemon: Readonly<Record<string, string>>,
): AnswerHead | undefined {
  if (WITHOUT_BODY.has(status) || headers['content-encoding'] !== undefined) return undefined
  const plain = plainHeaders(endToEnd(headers))
  return plain && { status, headers: { ...plain, ...ofDaemon } }
}

function plainHeaders(headers: HeaderValues): Record<string, string> | undefined {
  const plain: Record<string, string> = {}
  let length = 0
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' || !isPlainValue(value)) return undefined
    plain[name] = value
    length += name.length + value.length
  }
  return length > MAX_HEADERS_CHARS ? undefined : plain
}
