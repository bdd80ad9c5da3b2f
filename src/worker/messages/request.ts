import { z } from 'zod'
import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { attestationOfBody } from '../http/attestation-member.ts'
import { CheckedMember } from '../completion/checked-member.ts'
import { parseBodyObject, pick, requireMembers, sortMembers } from '../completion/member-rules.ts'
import { isText, listOf } from '../completion/list-schema.ts'
import { parseChatRequest } from '../completion/request.ts'
import { jsonSchemaObject, withExactIntegers } from '../completion/schema-members.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { readMessages } from './blocks.ts'
import { MESSAGES_RULES } from './members.ts'
import { readThinking, type ReadThinking } from './thinking.ts'
import { readTools } from './tools.ts'

/** A parsed request to `/v1/messages`. */
export interface MessagesRequest {
  readonly chat: ChatRequest
  readonly dropped: readonly string[]
  readonly stopSequences: readonly string[]
}

const stopSequences = new CheckedMember('stop_sequences', listOf(isText), 'a list of strings')

const format = z.looseObject({ type: z.literal('json_schema'), schema: jsonSchemaObject }).nullish()
const outputFormat = new CheckedMember('output_format', format, 'of type json_schema with a schema')
const outputConfig = new CheckedMember(
  'output_config',
  z.looseObject({ effort: z.string().nullish(), format }),
  'an object with an effort, or a format of type json_schema',
)

/** Members that may hold JSON Schemas. */
const WITH_SCHEMAS = ['tools', 'output_config', 'output_format']

/**
 * Translates a request to `/v1/messages` into the internal request, an equivalent chat completion.
 * @throws ApiError missing_field for `model` and `messages`, else invalid_request_error; none quotes the body
 */
export function parseMessagesRequest(bytes: Bytes): MessagesRequest {
  const body = parseBodyObject(bytes)
  const { mapped: parsed, dropped } = sortMembers(body, MESSAGES_RULES)
  requireMembers(parsed, ['model', 'messages'])
  const mapped = withExactIntegers(parsed, bytes, WITH_SCHEMAS)
  const read = readMessages(mapped['system'], mapped['messages'], bytes)
  const tools = readTools(mapped['tools'], mapped['tool_choice'])
  const config = outputConfig.optional(mapped['output_config'])
  const thinking = readThinking(mapped['thinking'], config?.effort ?? undefined)
  const stop = stopSequences.optional(mapped['stop_sequences']) ?? []
  const chat = {
    model: mapped['model'],
    messages: read.messages,
    // Some clients send `"stream": null` or other values; only `true` requests a stream.
    ...(mapped['stream'] === true && { stream: true }),
    ...pick(mapped, ['max_tokens', 'temperature', 'top_p', 'top_k', 'failover']),
    ...(stop.length > 0 && { stop }),
    ...tools.members,
    ...responseFormat(config?.format ?? outputFormat.optional(mapped['output_format'])),
  }
  return {
    stopSequences: stop,
    chat: {
      ...parseChatRequest(utf8(JSON.stringify(chat))),
      constraints: attestationOfBody(bytes, body),
      includeReasoning: thinking.shown,
      reasoning: thinking.effort,
      effortMatch: 'nearest',
      effortMember: thinking.member,
      reasoningHiddenByDefault: thinking.isDefault,
    },
    dropped: [...dropped, ...read.dropped, ...tools.dropped, ...droppedOf(config ?? {}, thinking)],
  }
}

/** The parts of `output_config` that have no effect: those that are unknown here, and the effort where there is no thinking. */
function droppedOf(config: JsonObject, { member }: ReadThinking): readonly string[] {
  return Object.entries(config).flatMap(([name, value]) => {
    const place = `output_config.${name}`
    const isUsed = name === 'effort' ? member === place : name === 'format'
    return isUsed || value === null ? [] : place
  })
}

function responseFormat(wanted: z.output<typeof format>): JsonObject {
  if (wanted === null || wanted === undefined) return {}
  const { type, schema } = wanted
  return { response_format: { type, json_schema: { name: 'output', schema, strict: true } } }
}
