import type { JsonCursor, Range } from '../json/scan.ts'
import type { MediaKind, Messages } from '../provider/chat-request.ts'
import { scanPart } from './request-parts.ts'

/** The result of scanning `messages`: its facts, or a description of the problem for the client. */
export type MessagesScan = Messages | (Range & { readonly problem: string })

/** The content of the messages, counted during the scan. */
interface Content {
  textBytes: number
  readonly media: Record<MediaKind, number>
  pictureBytes: number
  audioBytes: number
}

/** The state of the scan of one message. */
interface Message {
  role: string | undefined
  contentFits: boolean
  hasReasoning: boolean
  /** The counts of all messages. */
  readonly content: Content
  /** The bytes of the body. */
  readonly bytes: Uint8Array
}

const MEMBER_READERS: ReadonlyMap<string, (cursor: JsonCursor, message: Message) => void> = new Map(
  [
    ['role', readRole],
    ['content', readContent],
    ['reasoning', readReasoning],
    ['reasoning_content', readReasoning],
    ['tool_calls', readToolCalls],
  ],
)

/**
 * Scans `messages` during the single pass over the body. Each message must be an object with a string `role`, and as
 * `content` a string, an array or nothing; the provider checks everything deeper.
 * @param bytes the body
 */
export function scanMessages(cursor: JsonCursor, bytes: Uint8Array): MessagesScan {
  if (cursor.peek() !== 'array') {
    return { ...cursor.skip(), problem: '"messages" must be an array.' }
  }
  let count = 0
  const content: Content = {
    textBytes: 0,
    media: { image: 0, audio: 0, video: 0, file: 0 },
    pictureBytes: 0,
    audioBytes: 0,
  }
  const withReasoning: Range[] = []
  let problem: string | undefined
  const range = cursor.array((index) => {
    const start = cursor.at
    const message = scanMessage(cursor, content, bytes)
    count += 1
    if (typeof message === 'string') {
      problem ??= `"messages[${index}]" ${message}.`
      return
    }
    if (message.role === 'assistant' && message.hasReasoning) {
      withReasoning.push({ start, end: cursor.at })
    }
  })
  if (count === 0) problem = '"messages" must not be empty.'
  return problem === undefined
    ? { ...range, count, ...content, withReasoning }
    : { ...range, problem }
}

/**
 * Scans one message.
 * @returns what is wrong with it, if anything
 */
function scanMessage(cursor: JsonCursor, content: Content, bytes: Uint8Array): Message | string {
  if (cursor.peek() !== 'object') {
    cursor.skip()
    return 'must be an object'
  }
  const message: Message = {
    role: undefined,
    contentFits: true,
    hasReasoning: false,
    content,
    bytes,
  }
  cursor.object((name) => MEMBER_READERS.get(name)?.(cursor, message))
  if (message.role === undefined) return 'must have a string as "role"'
  if (!message.contentFits) return 'must have a string, an array or null as "content"'
  return message
}

function readRole(cursor: JsonCursor, message: Message): void {
  message.role = cursor.peek() === 'string' ? cursor.string() : undefined
}

function readContent(cursor: JsonCursor, message: Message): void {
  const kind = cursor.peek()
  message.contentFits = kind === 'string' || kind === 'array' || kind === 'null'
  if (kind === 'string') message.content.textBytes += cursor.textBytes()
  if (kind === 'array') cursor.array(() => readPart(cursor, message))
}

function readPart(cursor: JsonCursor, { content, bytes }: Message): void {
  if (cursor.peek() !== 'object') return
  const part = scanPart(cursor, bytes)
  content.textBytes += part.textBytes
  content.pictureBytes += part.pictureBytes
  content.audioBytes += part.audioBytes
  if (part.media !== undefined) content.media[part.media] += 1
}

function readReasoning(cursor: JsonCursor, message: Message): void {
  message.hasReasoning = true
  if (cursor.peek() === 'string') message.content.textBytes += cursor.textBytes()
}

function readToolCalls(cursor: JsonCursor, message: Message): void {
  const { start, end } = cursor.skip()
  message.content.textBytes += end - start
}
