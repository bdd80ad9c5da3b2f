import type { JsonCursor, Range } from '../json/scan.ts'
import type { Messages } from '../provider/chat-request.ts'

/** What the pass over `messages` finds: the facts, or what is wrong with them in words for the caller. */
export type MessagesScan = Messages | (Range & { readonly problem: string })

/** What one message has shown so far. */
interface Message {
  role: string | undefined
  contentFits: boolean
  hasReasoning: boolean
  textBytes: number
  images: number
}

/** Content parts whose text counts as text; a part of any other type counts as an image. */
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal', 'thinking'])

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
 * Walks `messages` in the one pass over the body. Each must be an object with a string `role` and a string, an
 * array or nothing as `content`; what is deeper is between the caller and the provider.
 */
export function scanMessages(cursor: JsonCursor): MessagesScan {
  if (cursor.peek() !== 'array') {
    return { ...cursor.skip(), problem: '"messages" must be an array.' }
  }
  const sum = { count: 0, textBytes: 0, images: 0 }
  const withReasoning: Range[] = []
  let problem: string | undefined
  const range = cursor.array((index) => {
    const start = cursor.at
    const message = scanMessage(cursor)
    sum.count += 1
    if (typeof message === 'string') {
      problem ??= `"messages[${index}]" ${message}.`
      return
    }
    sum.textBytes += message.textBytes
    sum.images += message.images
    if (message.role === 'assistant' && message.hasReasoning) {
      withReasoning.push({ start, end: cursor.at })
    }
  })
  if (sum.count === 0) problem = '"messages" must not be empty.'
  return problem === undefined ? { ...range, ...sum, withReasoning } : { ...range, problem }
}

/** One message, or what is wrong with it. */
function scanMessage(cursor: JsonCursor): Message | string {
  if (cursor.peek() !== 'object') {
    cursor.skip()
    return 'must be an object'
  }
  const message: Message = {
    role: undefined,
    contentFits: true,
    hasReasoning: false,
    textBytes: 0,
    images: 0,
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
  if (kind === 'string') message.textBytes += cursor.textBytes()
  if (kind === 'array') cursor.array(() => readPart(cursor, message))
}

function readPart(cursor: JsonCursor, message: Message): void {
  if (cursor.peek() !== 'object') return
  let isText = false
  cursor.object((name) => {
    if (cursor.peek() !== 'string') return
    if (name === 'type') isText = TEXT_PARTS.has(cursor.string())
    else if (TEXT_PARTS.has(name)) message.textBytes += cursor.textBytes()
  })
  if (!isText) message.images += 1
}

function readReasoning(cursor: JsonCursor, message: Message): void {
  message.hasReasoning = true
  if (cursor.peek() === 'string') message.textBytes += cursor.textBytes()
}

function readToolCalls(cursor: JsonCursor, message: Message): void {
  const { start, end } = cursor.skip()
  message.textBytes += end - start
}
