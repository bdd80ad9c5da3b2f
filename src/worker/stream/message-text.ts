import { BrokenStream } from './broken-stream.ts'
import { isJsonObject, optionalObjects, optionalString, type JsonObject } from './json-object.ts'

/** The texts of a delta or a message, each undefined where the provider sent none. */
export interface MessageText {
  /** May be empty, as beside tool calls. */
  readonly content: string | undefined
  readonly reasoning: string | undefined
  readonly refusal: string | undefined
}

/**
 * Reads the texts of a delta or message in every known form. Servers name the reasoning text differently; when a
 * message has it under two names, both hold the same text, so the first one that is not empty is used.
 * @throws BrokenStream `malformed` when a text has the wrong type
 */
export function readMessageText(message: JsonObject): MessageText {
  const { content, refusal, reasoning, reasoning_content: olderReasoning } = message
  const named = optionalString(reasoning) || optionalString(olderReasoning)
  if (!Array.isArray(content)) {
    return {
      content: optionalString(content),
      reasoning: named || undefined,
      refusal: optionalString(refusal) || undefined,
    }
  }
  const parts = content.map(readPart)
  return {
    content: parts.map((part) => part.text).join(''),
    reasoning: named || parts.map((part) => part.thinking).join('') || undefined,
    refusal: optionalString(refusal) || undefined,
  }
}

/** One part of list-form content; Mistral's models put their reasoning into parts of type `thinking`. */
function readPart(part: unknown): { text: string; thinking: string } {
  if (!isJsonObject(part)) throw new BrokenStream('malformed')
  const { type, text, thinking } = part
  if (type === 'text') return { text: optionalString(text) ?? '', thinking: '' }
  if (type !== 'thinking') throw new BrokenStream('malformed')
  if (!Array.isArray(thinking)) return { text: '', thinking: optionalString(thinking) ?? '' }
  const inner = optionalObjects(thinking).map((one) => optionalString(one['text']) ?? '')
  return { text: '', thinking: inner.join('') }
}

/** Length in UTF-8 bytes of well-formed text, without encoding it. */
export function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    // A surrogate pair is two units and four bytes.
    length += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
  }
  return length
}
