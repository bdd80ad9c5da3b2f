import * as z from 'zod'
import type { Bytes } from './bytes.ts'

/**
 * Small calls to the daemon or to the ledger process, sent as messages over one WebSocket, to which `MESSAGES_PATH` is
 * upgraded. A frame has one or more messages; each is a kind (one byte), an id (four bytes, big endian), the lengths of
 * head and body (four each), the head (JSON, UTF-8) and the body.
 */
export const MESSAGES_PATH = '/v1/messages'

/**
 * `/v1/chunks/<id>`, with an id that the worker chooses, is upgraded to a WebSocket with the same frames. Over it the
 * daemon sends the chunks of the streams that the worker has requested there (`StreamSpec.to`). The ids of its messages
 * are the streams' numbers.
 */
export const CHUNKS_PATH = '/v1/chunks'

/** GET `/v1/waiting/<id>`: an answer that is too large for a message, by its id. */
export const WAITING_PATH = '/v1/waiting'

export const MESSAGE_KINDS = {
  /** From the worker: a POST. Head: `CallHead`. */
  call: 1,
  /** From the worker: cancels that call, because nobody awaits its answer any more. No head, no body. */
  cancel: 2,
  /** To the worker: the complete answer. Head: `AnswerHead`. */
  answer: 3,
  /** To the worker: the answer broke off after this part of its body. Head: `AnswerHead`. */
  broken: 4,
  /** To the worker: the answer is not small, and waits below `WAITING_PATH`. Head: `WaitingHead`. */
  waiting: 5,
  /** To the worker, on a connection for chunks: the next bytes of that stream, cut anywhere. No head. */
  chunk: 6,
  /**
   * To the worker, on a connection for chunks: the end of that stream. The body is its `StreamRecord` in JSON. It is
   * empty where the record is unknown, or is too large for a message or for the answer to a `cut`; the worker must then
   * fetch it (`LINK_PATHS.streams`). No head.
   */
  end: 7,
  /**
   * From the worker: how many bytes of that stream's chunks its client has taken since the last such message
   * (`printTaken`). No head.
   */
  taken: 8,
  /**
   * From the worker: no more chunks of that stream are wanted. The daemon answers with `end`, even where it has already
   * sent that. No head, no body.
   */
  cut: 9,
} as const

export type MessageKind = (typeof MESSAGE_KINDS)[keyof typeof MESSAGE_KINDS]

export interface LinkMessage {
  readonly kind: MessageKind
  /** The id of the call or stream, chosen by the worker. */
  readonly id: number
  /** JSON, or empty. */
  readonly head: string
  readonly body: Uint8Array
}

/** Bodies up to this size are sent as messages, both those of calls and those of providers' answers. */
export const SMALL_BODY_BYTES = 64 * 1024

/** The largest message, and the largest frame: half of what workerd accepts. */
export const MAX_MESSAGE_BYTES = 512 * 1024

/** The largest body of a message with a head of the usual length. */
export const MAX_MESSAGE_BODY_BYTES = MAX_MESSAGE_BYTES - 16 * 1024

/** Most unanswered calls of one connection. */
export const MAX_OPEN_CALLS = 1_024

/** Most bytes of one stream's chunks that the client has not taken yet; the worker holds them. */
export const CHUNK_WINDOW_BYTES = 64 * 1024

/** The largest chunk; a larger one is sent as several. */
export const MAX_CHUNK_BYTES = CHUNK_WINDOW_BYTES / 4

/**
 * The largest frame of chunks: as long as one client has not taken its part of a frame, the complete frame stays in
 * memory.
 */
export const MAX_CHUNK_FRAME_BYTES = 64 * 1024

/** The worker reports taken bytes at the latest when they reach this. */
export const TAKEN_STEP_BYTES = CHUNK_WINDOW_BYTES / 4

/** Encodes the number of bytes that were taken as a message's body: four bytes, big endian. */
export function printTaken(bytes: number): Bytes {
  const body = new Uint8Array(4)
  new DataView(body.buffer).setUint32(0, bytes)
  return body
}

/** @throws MalformedFrame */
export function parseTaken(body: Uint8Array): number {
  if (body.length !== 4) throw new MalformedFrame('a malformed number of bytes')
  return new DataView(body.buffer, body.byteOffset, 4).getUint32(0)
}

/**
 * Whether a header of a message may have this value: printable ASCII and tabs. Programs disagree on other values, or
 * refuse them.
 */
export function isPlainValue(value: string): boolean {
  return PLAIN.test(value)
}

const PLAIN = /^[\t -~]*$/

const headersSchema = z.record(z.string(), z.string())

export const callHeadSchema = z.object({
  /** Path and query of the link. */
  path: z.string().startsWith('/'),
  /** Names in lower case. */
  headers: headersSchema,
  /**
   * On an egress call: asks the daemon to write the client's complete answer itself (`WholeAnswerSpec`, whole-answer.ts). Not
   * available over HTTP.
   */
  whole: z.unknown().optional(),
})

export const answerHeadSchema = z.object({
  status: z.int().min(200).max(599),
  headers: headersSchema,
  /**
   * Present where the daemon has written the complete answer as requested: its `WholeAnswerRecord`. Otherwise the body is the
   * provider's.
   */
  whole: z.unknown().optional(),
})

export const waitingHeadSchema = z.object({ waiting: z.string().regex(/^[\w-]+$/) })

export type CallHead = z.output<typeof callHeadSchema>
export type AnswerHead = z.output<typeof answerHeadSchema>

const PREFIX_BYTES = 13

/** The bytes are not a valid frame: nothing more from their sender can be understood. */
export class MalformedFrame extends Error {
  constructor(what: string) {
    super(`malformed frame: ${what}`)
    this.name = 'MalformedFrame'
  }
}

const KINDS: ReadonlyMap<number, MessageKind> = new Map(
  Object.values(MESSAGE_KINDS).map((kind) => [kind, kind]),
)
const NOTHING = new Uint8Array(0)
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A message with its encoded head, and its length in a frame. */
interface Prepared {
  readonly message: LinkMessage
  readonly head: Uint8Array
  readonly length: number
}

/**
 * Encodes messages into frames, in order.
 * @param largest maximum size of a frame, bytes; only a single larger message exceeds it
 */
export function writeFrames(
  messages: readonly LinkMessage[],
  largest = MAX_MESSAGE_BYTES,
): Bytes[] {
  const frames: Bytes[] = []
  let parts: Prepared[] = []
  let length = 0
  for (const message of messages) {
    const part = prepared(message)
    if (parts.length > 0 && length + part.length > largest) {
      frames.push(frameOf(parts, length))
      parts = []
      length = 0
    }
    parts.push(part)
    length += part.length
  }
  if (parts.length > 0) frames.push(frameOf(parts, length))
  return frames
}

function prepared(message: LinkMessage): Prepared {
  const head = message.head === '' ? NOTHING : encoder.encode(message.head)
  return { message, head, length: PREFIX_BYTES + head.length + message.body.length }
}

function frameOf(parts: readonly Prepared[], length: number): Bytes {
  const frame = new Uint8Array(length)
  const view = new DataView(frame.buffer)
  let at = 0
  for (const { message, head } of parts) {
    view.setUint8(at, message.kind)
    view.setUint32(at + 1, message.id)
    view.setUint32(at + 5, head.length)
    view.setUint32(at + 9, message.body.length)
    frame.set(head, at + PREFIX_BYTES)
    frame.set(message.body, at + PREFIX_BYTES + head.length)
    at += PREFIX_BYTES + head.length + message.body.length
  }
  return frame
}

/**
 * Decodes the messages of a frame; their bodies are views of it.
 * @throws MalformedFrame
 */
export function readFrame(frame: Uint8Array): LinkMessage[] {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length)
  const messages: LinkMessage[] = []
  let at = 0
  while (at < frame.length) {
    if (frame.length - at < PREFIX_BYTES) throw new MalformedFrame('it ends in a prefix')
    const kind = KINDS.get(view.getUint8(at))
    if (kind === undefined) throw new MalformedFrame('a message of no kind')
    const id = view.getUint32(at + 1)
    const headAt = at + PREFIX_BYTES
    const bodyAt = headAt + view.getUint32(at + 5)
    const end = bodyAt + view.getUint32(at + 9)
    if (end > frame.length) throw new MalformedFrame('it ends in a message')
    if (end - at > MAX_MESSAGE_BYTES) throw new MalformedFrame('a message that is too large')
    const head = textOf(frame.subarray(headAt, bodyAt))
    messages.push({ kind, id, head, body: frame.subarray(bodyAt, end) })
    at = end
  }
  if (messages.length === 0) throw new MalformedFrame('it is empty')
  return messages
}

function textOf(bytes: Uint8Array): string {
  if (bytes.length === 0) return ''
  try {
    return decoder.decode(bytes)
  } catch {
    throw new MalformedFrame('a head that is not UTF-8')
  }
}
