import * as z from 'zod'
import type { Bytes } from './bytes.ts'

/**
 * Small calls of the daemon or of the ledger process as messages over one WebSocket, to which `MESSAGES_PATH` is upgraded. A frame is one or more
 * messages; each is a kind (one byte), an id (four, big endian), the lengths of head and body (four each), the head (JSON, UTF-8) and the body.
 */
export const MESSAGES_PATH = '/v1/messages'

/**
 * Below it, by an id of the worker's choice: upgraded to a WebSocket of the same frames, over which the daemon sends the chunks of the
 * streams that the worker has ordered there (`ChunkOrder.to`). The ids of its messages are the streams' numbers.
 */
export const CHUNKS_PATH = '/v1/chunks'

/** GET below it: an answer that is no message, by its id. */
export const WAITING_PATH = '/v1/waiting'

export const MESSAGE_KINDS = {
  /** From the worker: a POST. Head: `CallHead`. */
  call: 1,
  /** From the worker: nobody awaits the answer to that call any more. No head, no body. */
  leave: 2,
  /** To the worker: the whole answer. Head: `AnswerHead`. */
  answer: 3,
  /** To the worker: the answer broke off after this part of its body. Head: `AnswerHead`. */
  broken: 4,
  /** To the worker: the answer is no small one, and waits below `WAITING_PATH`. Head: `WaitingHead`. */
  waiting: 5,
  /** To the worker, as the next one of a connection for chunks: the next bytes of that stream, cut anywhere. No head. */
  chunk: 6,
  /**
   * To the worker: nothing more comes of that stream. The body is its `StreamRecord` in JSON; empty where that is too large for a message,
   * or for the answer to a `cut`, and is to be asked for (`LINK_PATHS.streams`), or is unknown. No head.
   */
  end: 7,
  /** From the worker: how many bytes of that stream's chunks its client has taken since it said so last (`printTaken`). No head. */
  taken: 8,
  /** From the worker: no more chunks of that stream are wanted. The daemon answers with `end`, also where it has sent that. No head, no body. */
  cut: 9,
} as const

export type MessageKind = (typeof MESSAGE_KINDS)[keyof typeof MESSAGE_KINDS]

export interface LinkMessage {
  readonly kind: MessageKind
  /** Of the call, chosen by the worker. */
  readonly id: number
  /** JSON, or empty. */
  readonly head: string
  readonly body: Uint8Array
}

/** Bodies up to this travel as messages, those of calls and those of providers' answers. */
export const SMALL_BODY_BYTES = 64 * 1024

/** The largest message, and the largest frame: half of what workerd takes. */
export const MAX_MESSAGE_BYTES = 512 * 1024

/** The largest body of a message whose head has the common length. */
export const MAX_MESSAGE_BODY_BYTES = MAX_MESSAGE_BYTES - 16 * 1024

/** Calls of one connection that are not answered. */
export const MAX_OPEN_CALLS = 1_024

/** Bytes of one stream's chunks that the client has not taken, at most: the worker holds them. */
export const CHUNK_WINDOW_BYTES = 64 * 1024

/** The largest chunk; a larger one is sent as several. */
export const MAX_CHUNK_BYTES = CHUNK_WINDOW_BYTES / 4

/** The largest frame of chunks: a client that does not take one of them keeps the whole frame in memory. */
export const MAX_CHUNK_FRAME_BYTES = 64 * 1024

/** The worker says what was taken at the latest when it is this much. */
export const TAKEN_STEP_BYTES = CHUNK_WINDOW_BYTES / 4

/** A number of bytes that were taken, as a message's body: four bytes, big endian. */
export function printTaken(bytes: number): Bytes {
  const body = new Uint8Array(4)
  new DataView(body.buffer).setUint32(0, bytes)
  return body
}

/** @throws MalformedFrame */
export function parseTaken(body: Uint8Array): number {
  if (body.length !== 4) throw new MalformedFrame('a number of bytes that is none')
  return new DataView(body.buffer, body.byteOffset, 4).getUint32(0)
}

/** Whether a header of a message may have this value. Others are read differently by different programs, or refused. */
export function isPlainValue(value: string): boolean {
  return PLAIN.test(value)
}

const PLAIN = /^[\t -~]*$/

const headersSchema = z.record(z.string(), z.string())

export const callHeadSchema = z.object({
  /** Of the link, with its query. */
  path: z.string().startsWith('/'),
  /** Names in lower case. */
  headers: headersSchema,
  /**
   * On an egress call: asks the daemon to write the client's whole answer itself (`WholeOrder`, whole-order.ts). Over HTTP there is no such
   * order.
   */
  whole: z.unknown().optional(),
})

export const answerHeadSchema = z.object({
  status: z.int().min(200).max(599),
  headers: headersSchema,
  /** The daemon has written the whole answer as ordered, and this is its `WholeRecord`. Otherwise the body is the provider's. */
  whole: z.unknown().optional(),
})

export const waitingHeadSchema = z.object({ waiting: z.string().regex(/^[\w-]+$/) })

export type CallHead = z.output<typeof callHeadSchema>
export type AnswerHead = z.output<typeof answerHeadSchema>

const PREFIX_BYTES = 13

/** A frame that is none: its sender cannot be understood any more. */
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

/** A message as it is sent, without its body. */
interface Prepared {
  readonly message: LinkMessage
  readonly head: Uint8Array
  readonly length: number
}

/**
 * The frames of messages, in order.
 * @param largest bytes; only a single message may have more
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
 * The messages of a frame; their bodies are parts of it.
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
