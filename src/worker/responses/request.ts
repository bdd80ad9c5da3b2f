import { z } from 'zod'
import type { ToolIdentity } from '../../protocol/stream-record.ts'
import { EFFORTS, parseEffort } from '../../protocol/effort.ts'
import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { attestationOfBody } from '../http/attestation-member.ts'
import { CheckedMember } from '../completion/checked-member.ts'
import { requireFewEntries } from '../completion/few-entries.ts'
import { parseBodyObject, pick, requireMembers, sortMembers } from '../completion/member-rules.ts'
import { isText, listOf, textsByName } from '../completion/list-schema.ts'
import { parseChatRequest } from '../completion/request.ts'
import { jsonSchemaObject, withExactIntegers } from '../completion/schema-members.ts'
import { ApiError } from '../http/errors.ts'
import type { ChatRequest } from '../provider/chat-request.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { readInput } from './input.ts'
import { RESPONSES_RULES } from './members.ts'
import { chooseTools, readTools } from './tools.ts'

/** A parsed request to `/v1/responses`. */
export interface ResponsesRequest {
  readonly chat: ChatRequest
  readonly tools: ReadonlyMap<string, ToolIdentity>
  /** Whether reasoning items have the member `encrypted_content`, which is always null here. */
  readonly encryptedContent: boolean
  /** The members of the request that the answer repeats. */
  readonly echo: JsonObject
  readonly dropped: readonly string[]
}

const text = new CheckedMember('instructions', z.string(), 'a string')
const maxTokens = new CheckedMember(
  'max_output_tokens',
  z.int().min(1),
  'a whole number of at least 1',
)
const topLogprobs = new CheckedMember(
  'top_logprobs',
  z.int().min(0).max(20),
  'a number from 0 to 20',
)
const include = new CheckedMember('include', listOf(isText), 'a list of strings')
const metadata = new CheckedMember('metadata', textsByName, 'an object of strings')
const reasoning = new CheckedMember(
  'reasoning',
  z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }),
  'an object with an effort',
)
const textOptions = new CheckedMember(
  'text',
  z.looseObject({
    format: z
      .discriminatedUnion('type', [
        z.object({ type: z.literal('text') }),
        z.object({ type: z.literal('json_object') }),
        z.object({
          type: z.literal('json_schema'),
          name: z.string(),
          schema: jsonSchemaObject,
          description: z.string().nullish(),
          strict: z.boolean().nullish(),
        }),
      ])
      .nullish(),
    verbosity: z.string().nullish(),
  }),
  'an object with a format of type text, json_object or json_schema',
)

/** Members that may hold JSON Schemas. */
const WITH_SCHEMAS = ['tools', 'text']

const LOGPROBS = 'message.output_text.logprobs'
const ENCRYPTED = 'reasoning.encrypted_content'

/**
 * Translates a request to `/v1/responses` into the internal request, an equivalent chat completion.
 * @throws ApiError missing_field for `model` and `input`, else invalid_request_error; none quotes the body
 */
export function parseResponsesRequest(bytes: Bytes): ResponsesRequest {
  const body = parseBodyObject(bytes)
  const { mapped: parsed, dropped } = sortMembers(body, RESPONSES_RULES)
  requireMembers(parsed, ['model', 'input'])
  const mapped = withExactIntegers(parsed, bytes, WITH_SCHEMAS)
  const instructions = text.optional(mapped['instructions'])
  const input = readInput(instructions, mapped['input'])
  const tools = readTools(mapped['tools'])
  requireFewEntries(mapped['include'], 'include')
  const included = include.optional(mapped['include']) ?? []
  const format = textOptions.optional(mapped['text'])
  const effort = effortOf(mapped['reasoning'])
  const cap = maxTokens.optional(mapped['max_output_tokens'])
  const logprobs = topLogprobs.optional(mapped['top_logprobs']) ?? 0
  const chosen = chooseTools(mapped['tool_choice'], tools)
  const chat = {
    model: mapped['model'],
    messages: input.messages,
    ...pick(mapped, ['stream', 'temperature', 'top_p', 'user', 'failover', 'include_reasoning']),
    ...chosen.members,
    ...(tools.functions.length > 0 && pick(mapped, ['parallel_tool_calls'])),
    ...(cap !== undefined && { max_tokens: cap }),
    ...(effort !== undefined && { reasoning: effort }),
    ...responseFormat(format?.format),
    ...((logprobs > 0 || included.includes(LOGPROBS)) && {
      logprobs: true,
      top_logprobs: logprobs,
    }),
  }
  return {
    chat: {
      ...parseChatRequest(utf8(JSON.stringify(chat))),
      constraints: attestationOfBody(bytes, body),
    },
    tools: tools.identities,
    encryptedContent: included.includes(ENCRYPTED),
    echo: echoOf(mapped, effort, metadata.optional(mapped['metadata']) ?? {}),
    dropped: [
      ...dropped,
      ...input.dropped,
      ...tools.dropped,
      ...chosen.dropped,
      ...(format?.verbosity ? ['text.verbosity'] : []),
      ...included.flatMap((name) =>
        name === LOGPROBS || name === ENCRYPTED ? [] : `include.${name}`,
      ),
    ],
  }
}

function effortOf(value: unknown): string | undefined {
  const { effort } = reasoning.optional(value) ?? {}
  if (effort === undefined || effort === null) return undefined
  const known = parseEffort(effort)
  if (known !== undefined) return known
  const message = `"reasoning.effort" must be one of none, ${EFFORTS.join(', ')}.`
  throw new ApiError('invalid_request_error', message, { param: 'reasoning.effort' })
}

type TextFormat = NonNullable<ReturnType<typeof textOptions.read>['format']>

function responseFormat(format: TextFormat | null | undefined): JsonObject {
  if (format === null || format === undefined || format.type === 'text') return {}
  if (format.type === 'json_object') return { response_format: format }
  const { type, ...schema } = format
  return { response_format: { type, json_schema: schema } }
}

/** Members of the answer that repeat the request, with the defaults of the format. */
function echoOf(members: JsonObject, effort: string | undefined, meta: JsonObject): JsonObject {
  return {
    instructions: members['instructions'] ?? null,
    max_output_tokens: members['max_output_tokens'] ?? null,
    max_tool_calls: null,
    metadata: meta,
    parallel_tool_calls: members['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: effort === 'off' ? 'none' : (effort ?? null), summary: null },
    safety_identifier: null,
    service_tier: 'default',
    store: false,
    temperature: members['temperature'] ?? 1,
    text: { format: { type: 'text' }, ...Object(members['text']) },
    tool_choice: members['tool_choice'] ?? 'auto',
    tools: members['tools'] ?? [],
    top_logprobs: members['top_logprobs'] ?? 0,
    top_p: members['top_p'] ?? 1,
    truncation: 'disabled',
    background: false,
    user: members['user'] ?? null,
  }
}
