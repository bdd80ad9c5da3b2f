import { z } from 'zod'
import { CheckedMember } from '../completion/checked-member.ts'
import {
  Conversation,
  requireText,
  type ContentPart,
  type TextPart,
} from '../completion/conversation.ts'
import { hasText, listOf } from '../completion/list-schema.ts'
import { ApiError } from '../http/errors.ts'
import { isJsonObject, type JsonObject } from '../stream/json-object.ts'
import { ITEM_RULES } from './members.ts'
import { customArguments, flatName } from './tools.ts'

/** `input` of a request as messages, and the types of items that were dropped. */
export interface ReadInput {
  readonly messages: readonly JsonObject[]
  readonly dropped: readonly string[]
}

const parts = z.union([z.string(), listOf(hasText('type'))])

const message = new CheckedMember(
  'input',
  z.looseObject({
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: parts,
  }),
  'a message with a role and content',
)
const agentMessage = new CheckedMember(
  'input',
  z.looseObject({ content: parts.optional(), text: z.string().optional() }),
  'a message of an agent',
)
const reasoning = new CheckedMember(
  'input',
  z.looseObject({
    summary: listOf(hasText('text')).nullish(),
    content: listOf(hasText('text')).nullish(),
  }),
  'reasoning with a summary',
)
const namespace = z.string().nullish()
const functionCall = new CheckedMember(
  'input',
  z.looseObject({ call_id: z.string(), name: z.string(), arguments: z.string(), namespace }),
  'a function call with call_id, name and arguments',
)
const customCall = new CheckedMember(
  'input',
  z.looseObject({ call_id: z.string(), name: z.string(), input: z.string(), namespace }),
  'a custom tool call with call_id, name and input',
)
const callOutput = new CheckedMember(
  'input',
  z.looseObject({ call_id: z.string(), output: parts }),
  'the output of a call with call_id and output',
)

type ItemReader = (item: JsonObject, at: string, conversation: Conversation) => void

const ITEM_READERS: ReadonlyMap<string, ItemReader> = new Map([
  ['message', readMessage],
  ['agent_message', readAgentMessage],
  ['reasoning', readReasoning],
  ['function_call', readFunctionCall],
  ['function_call_output', readCallOutput],
  ['custom_tool_call', readCustomCall],
  ['custom_tool_call_output', readCallOutput],
])

/**
 * The conversation of a request to `/v1/responses`: `instructions`, then `input` as text or as items.
 * @throws ApiError with the invalid item as `param`
 */
export function readInput(instructions: string | undefined, input: unknown): ReadInput {
  const conversation = new Conversation()
  if (instructions) conversation.system([{ type: 'text', text: instructions }])
  const dropped: string[] = []
  if (typeof input === 'string') conversation.user([{ type: 'text', text: input }])
  else for (const [index, item] of itemsOf(input)) readItem(item, index, conversation, dropped)
  const messages = conversation.messages()
  if (messages.length === 0) throw invalid('"input" must not be empty.', 'input')
  return { messages, dropped }
}

function itemsOf(input: unknown): IterableIterator<[number, unknown]> {
  if (!Array.isArray(input)) throw invalid('"input" must be a string or a list of items.', 'input')
  return input.entries()
}

function readItem(
  item: unknown,
  index: number,
  conversation: Conversation,
  dropped: string[],
): void {
  const at = `input[${index}]`
  if (!isJsonObject(item)) throw invalid(`"${at}" must be an object.`, at)
  const given = item['type'] ?? 'message'
  const type = typeof given === 'string' ? given : ''
  const read = ITEM_READERS.get(type)
  if (read !== undefined) return read(item, at, conversation)
  // Some clients refer to earlier reasoning even where nothing is stored. Dropping it costs the model only a hint.
  const isReasoning = type === 'item_reference' && String(item['id']).startsWith('rs_')
  if (isReasoning) return void dropped.push('input.item_reference')
  const rule = ITEM_RULES.get(type)
  if (rule?.becomes !== 'dropped') {
    const reason = rule?.note ?? 'items of this type are not supported'
    throw invalid(`"${at}.type": ${reason}.`, `${at}.type`)
  }
  dropped.push(`input.${rule.member}`)
}

function readMessage(item: JsonObject, at: string, conversation: Conversation): void {
  const { role, content } = message.read(item, at)
  const place = `${at}.content`
  const read = contentParts(content, place)
  if (role === 'user') conversation.user(read)
  else if (role === 'assistant') conversation.text(joined(onlyText(read, place)))
  else conversation.system(onlyText(read, place))
}

function readAgentMessage(item: JsonObject, at: string, conversation: Conversation): void {
  const { content, text } = agentMessage.read(item, at)
  const place = `${at}.content`
  conversation.text(joined(onlyText(contentParts(content ?? text ?? '', place), place)))
}

function readReasoning(item: JsonObject, at: string, conversation: Conversation): void {
  const { summary, content } = reasoning.read(item, at)
  const texts = content?.length ? content : (summary ?? [])
  if (texts.length > 0) conversation.reasoning(texts.map(({ text }) => text).join('\n'))
}

function readFunctionCall(item: JsonObject, at: string, conversation: Conversation): void {
  const call = functionCall.read(item, at)
  const name = flatName(call.name, call.namespace ?? undefined)
  // Empty where the answer was cut off. Servers parse them as JSON.
  conversation.call({ id: call.call_id, name, arguments: call.arguments || '{}' })
}

function readCustomCall(item: JsonObject, at: string, conversation: Conversation): void {
  const call = customCall.read(item, at)
  const name = flatName(call.name, call.namespace ?? undefined)
  conversation.call({ id: call.call_id, name, arguments: customArguments(call.input) })
}

function readCallOutput(item: JsonObject, at: string, conversation: Conversation): void {
  const { call_id, output } = callOutput.read(item, at)
  conversation.result(call_id, contentParts(output, `${at}.output`), `${at}.call_id`)
}

function onlyText(read: readonly ContentPart[], at: string): readonly TextPart[] {
  return read.map((part, index) => requireText(part, `${at}[${index}]`))
}

function joined(texts: readonly TextPart[]): string {
  return texts.map(({ text }) => text).join('')
}

function contentParts(content: z.output<typeof parts>, at: string): readonly ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part, index) => contentPart(part, `${at}[${index}]`))
}

const textPart = new CheckedMember('input', z.looseObject({ text: z.string() }), 'a text part')
const refusalPart = new CheckedMember(
  'input',
  z.looseObject({ refusal: z.string() }),
  'a refusal part',
)
const imagePart = new CheckedMember(
  'input',
  z.looseObject({ image_url: z.string(), detail: z.string().nullish() }),
  'an image with an image_url; this service keeps no files',
)
const filePart = new CheckedMember(
  'input',
  z.looseObject({ file_data: z.string(), filename: z.string().nullish() }),
  'a file with file_data; this service keeps no files and fetches none',
)

type PartReader = (part: JsonObject, at: string) => ContentPart

const readText: PartReader = (part, at) => ({ type: 'text', text: textPart.read(part, at).text })

const PART_READERS: ReadonlyMap<string, PartReader> = new Map<string, PartReader>([
  ['input_text', readText],
  ['output_text', readText],
  ['summary_text', readText],
  ['text', readText],
  ['refusal', (part, at) => ({ type: 'text', text: refusalPart.read(part, at).refusal })],
  [
    'input_image',
    (part, at) => {
      const { image_url: url, detail } = imagePart.read(part, at)
      return { type: 'image_url', image_url: { url, ...(detail && { detail }) } }
    },
  ],
  [
    'input_file',
    (part, at) => {
      const { file_data, filename } = filePart.read(part, at)
      return { type: 'file', file: { file_data, ...(filename && { filename }) } }
    },
  ],
])

function contentPart(part: JsonObject, at: string): ContentPart {
  const read = PART_READERS.get(String(part['type']))
  if (read === undefined) {
    throw invalid(`"${at}.type": content of this type is not supported.`, `${at}.type`)
  }
  return read(part, at)
}

function invalid(text: string, param: string): ApiError {
  return new ApiError('invalid_request_error', text, { param })
}
