import { z } from 'zod'
import type { Bytes } from '../../protocol/bytes.ts'
import { CheckedMember } from '../completion/checked-member.ts'
import {
  Conversation,
  requireText,
  type ContentPart,
  type TextPart,
} from '../completion/conversation.ts'
import { hasText, listOf } from '../completion/list-schema.ts'
import { ApiError } from '../http/errors.ts'
import { holdsRounded } from '../json/exact-integers.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { BLOCK_RULES } from './members.ts'
import { toolInputs } from './tool-inputs.ts'

/** `system` and `messages` of a request as chat messages, and the types of blocks that were dropped. */
export interface ReadMessages {
  readonly messages: readonly JsonObject[]
  readonly dropped: readonly string[]
}

const content = z.union([z.string(), listOf(hasText('type'))])

const systemText = new CheckedMember('system', content, 'a string or a list of text blocks')
const messageShape = new CheckedMember(
  'messages',
  z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content }),
  'a message with a role and content',
)
const text = new CheckedMember('messages', z.looseObject({ text: z.string() }), 'a text block')
const thinking = new CheckedMember(
  'messages',
  z.looseObject({ thinking: z.string() }),
  'a thinking block',
)
const toolUse = new CheckedMember(
  'messages',
  z.looseObject({ id: z.string(), name: z.string(), input: z.unknown() }),
  'a tool_use block with id, name and input',
)
const toolResult = new CheckedMember(
  'messages',
  z.looseObject({
    tool_use_id: z.string(),
    content: content.nullish(),
    is_error: z.boolean().nullish(),
  }),
  'a tool_result block with tool_use_id',
)
const searchResult = new CheckedMember(
  'messages',
  z.looseObject({
    source: z.string(),
    title: z.string(),
    content: listOf(hasText('text')),
  }),
  'a search_result block with source, title and content',
)
const image = new CheckedMember(
  'messages',
  z.looseObject({
    source: z.union([
      z.looseObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() }),
      z.looseObject({ type: z.literal('url'), url: z.string() }),
    ]),
  }),
  'an image by data or URL; this service keeps no files',
)
const document = new CheckedMember(
  'messages',
  z.looseObject({
    title: z.string().nullish(),
    context: z.string().nullish(),
    source: z.union([
      z.looseObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() }),
      z.looseObject({ type: z.literal('text'), data: z.string() }),
      z.looseObject({ type: z.literal('content'), content }),
    ]),
  }),
  'a document by data, text or content; this service keeps no files and fetches none',
)

/**
 * Matches the line that begins Claude Code's system prompt, with its line breaks: it holds a hash that differs in every
 * request, which would defeat prefix caching. The text after it is the caller's prompt.
 */
const BILLING_HEADER = /^x-anthropic-billing-header:.*(?:\r?\n)*/

/**
 * The conversation of a request to `/v1/messages`.
 * @param body the text that `system` and `messages` were parsed from
 * @throws ApiError with the invalid block as `param`
 */
export function readMessages(system: unknown, messages: unknown, body: Bytes): ReadMessages {
  const reader = new MessageReader(body)
  reader.system(systemText.optional(system) ?? [], 'system')
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalid('"messages" must be a list of at least one message.', 'messages')
  }
  for (const [index, value] of messages.entries()) reader.message(value, `messages[${index}]`)
  return { messages: reader.conversation.messages(), dropped: reader.dropped }
}

type Content = z.output<typeof content>
type Block = Exclude<Content, string>[number]

class MessageReader {
  readonly conversation = new Conversation()
  readonly dropped: string[] = []
  readonly #body: Bytes
  /** The raw text of tool inputs by place; read only if a parsed input has lost precision. */
  #inputs: ReadonlyMap<string, string> | undefined

  constructor(body: Bytes) {
    this.#body = body
  }

  message(value: unknown, at: string): void {
    const { role, content: blocks } = messageShape.read(value, at)
    const place = `${at}.content`
    if (role === 'system') this.system(blocks, place)
    else if (role === 'user') this.#user(blocks, place)
    else this.#assistant(blocks, place)
  }

  system(blocks: Content, at: string): void {
    const parts = placed(blocks, at).flatMap(([block, place]) =>
      this.#part(block, place).flatMap((part) => withoutBillingHeader(requireText(part, place))),
    )
    // An empty system message would replace the default one that the templates of some models add where there is none.
    if (parts.some((part) => part.text !== '')) this.conversation.system(parts)
  }

  #user(blocks: Content, at: string): void {
    const parts: ContentPart[] = []
    for (const [block, place] of placed(blocks, at)) {
      if (block.type === 'tool_result') this.#result(block, place)
      else for (const part of this.#part(block, place)) parts.push(part)
    }
    if (parts.length > 0) this.conversation.user(parts)
  }

  #result(block: Block, at: string): void {
    const { tool_use_id, content: inner, is_error } = toolResult.read(block, at)
    if (is_error === true) this.dropped.push('messages.tool_result.is_error')
    const parts = this.#parts(inner ?? [], `${at}.content`)
    this.conversation.result(tool_use_id, parts, `${at}.tool_use_id`)
  }

  #assistant(blocks: Content, at: string): void {
    this.conversation.nextTurn()
    const texts: string[] = []
    for (const [block, place] of placed(blocks, at)) {
      if (block.type === 'text') texts.push(text.read(block, place).text)
      else if (block.type === 'thinking') {
        this.conversation.reasoning(thinking.read(block, place).thinking)
      } else if (block.type === 'tool_use') {
        const { id, name, input } = toolUse.read(block, place)
        this.conversation.call({ id, name, arguments: this.#argumentsOf(input, place) })
      } else this.#drop(block, place)
    }
    if (texts.length > 0) this.conversation.addText(texts.join(''))
  }

  /**
   * The arguments of an earlier tool call. Integers that a double cannot hold are taken from the raw text: the model must
   * find the ids that it wrote unchanged.
   */
  #argumentsOf(input: unknown, place: string): string {
    if (!holdsRounded(input)) return JSON.stringify(input ?? {})
    this.#inputs ??= toolInputs(this.#body)
    return this.#inputs.get(place) ?? JSON.stringify(input)
  }

  #parts(blocks: Content, at: string): ContentPart[] {
    return placed(blocks, at).flatMap(([block, place]) => this.#part(block, place))
  }

  /** The content parts of a block. A type that is neither text, image, document nor dropped is refused here. */
  #part(block: Block, at: string): ContentPart[] {
    const { type } = block
    if (type === 'text') return [{ type, text: text.read(block, at).text }]
    if (type === 'image') return [imagePart(block, at)]
    if (type === 'document') return this.#document(block, at)
    if (type === 'search_result') return [searchPart(block, at)]
    this.#drop(block, at)
    return []
  }

  #document(block: Block, at: string): ContentPart[] {
    const { title, context, source } = document.read(block, at)
    const about = [title, context].filter((one) => one !== null && one !== undefined)
    const heading: ContentPart[] = about.map((one) => ({ type: 'text', text: one }))
    if (source.type === 'text') return [...heading, { type: 'text', text: source.data }]
    if (source.type === 'content') {
      return [...heading, ...this.#parts(source.content, `${at}.source.content`)]
    }
    const file_data = `data:${source.media_type};base64,${source.data}`
    const described: ContentPart[] = context ? [{ type: 'text', text: context }] : []
    return [...described, { type: 'file', file: { file_data, ...(title && { filename: title }) } }]
  }

  #drop({ type }: Block, at: string): void {
    if (BLOCK_RULES.get(type)?.becomes !== 'dropped') {
      throw invalid(`"${at}.type": a block of this type is not supported here.`, `${at}.type`)
    }
    this.dropped.push(`messages.${type}`)
  }
}

function withoutBillingHeader(part: TextPart): TextPart[] {
  if (!BILLING_HEADER.test(part.text)) return [part]
  const rest = part.text.replace(BILLING_HEADER, '')
  return rest === '' ? [] : [{ ...part, text: rest }]
}

function placed(blocks: Content, at: string): (readonly [Block, string])[] {
  if (typeof blocks === 'string') return [[{ type: 'text', text: blocks }, at]]
  return blocks.map((block, index) => [block, `${at}[${index}]`])
}

function imagePart(block: Block, at: string): ContentPart {
  const { source } = image.read(block, at)
  const url = source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`
  return { type: 'image_url', image_url: { url } }
}

function searchPart(block: Block, at: string): ContentPart {
  const { source, title, content: texts } = searchResult.read(block, at)
  return { type: 'text', text: [title, source, ...texts.map((one) => one.text)].join('\n') }
}

function invalid(message: string, param: string): ApiError {
  return new ApiError('invalid_request_error', message, { param })
}
