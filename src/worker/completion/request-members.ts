import { z } from 'zod'
import { ApiError } from '../http/errors.ts'
import { constraintsSchema } from '../../protocol/constraints.ts'
import { EFFORTS } from '../../protocol/effort.ts'
import { PASSED_MEMBERS, type ChatRequest } from '../provider/chat-request.ts'

/** Types and ranges of the scalar members of a chat request (see docs/api.md). */

export const MAX_FAILOVERS = 5

const flag = z.boolean('must be true or false').optional()

const TOKENS = 'must be a whole number of at least 1'
const tokens = z.int(TOKENS).min(1, TOKENS).optional()

const TEMPERATURE = 'must be a number from 0 to 2'

/** The number of entries is checked before the entries, so that a long list costs nothing. */
export const failoverSchema = z
  .array(z.unknown(), 'must be an array of strings')
  .max(MAX_FAILOVERS, `must have at most ${MAX_FAILOVERS} entries`)
  .pipe(z.array(z.string('must be an array of strings')))
  .meta({ items: { type: 'string' }, description: 'Selectors to try next, in this order.' })

const forwardedUnchanged = z.unknown().describe('Handed on as it is; the provider answers for it.')

const members = z.object({
  model: z.string('must be a string').describe('A route selector, or `auto`.'),
  stream: flag,
  temperature: z.number(TEMPERATURE).min(0, TEMPERATURE).max(2, TEMPERATURE).optional(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  failover: failoverSchema.optional(),
  include_reasoning: flag.describe('`false` leaves reasoning out of the answer.'),
  stream_options: z
    .object(
      { include_usage: z.boolean('must have true or false as "include_usage"').nullish() },
      'must be an object',
    )
    .optional(),
})

const { model: selector, ...optionalMembers } = members.shape

/**
 * The whole body for the interface description: members checked here, members forwarded unread, and members scanned
 * elsewhere. For all others the route's `forward` decides. Null counts as absent.
 */
export const chatBodySchema = z.looseObject({
  model: selector,
  ...Object.fromEntries(
    Object.entries(optionalMembers).map(([name, schema]) => [name, schema.nullable()]),
  ),
  messages: z
    .array(
      z.looseObject({
        role: z.string(),
        content: z
          .union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()])
          .optional(),
      }),
    )
    .min(1),
  reasoning: z
    .enum([...EFFORTS, 'none'])
    .nullish()
    .describe('Effort; `none` is another name of `off`.'),
  attestation: constraintsSchema.nullish().describe('What the provider must meet.'),
  ...Object.fromEntries(PASSED_MEMBERS.map((name) => [name, forwardedUnchanged.optional()])),
})

export const CHECKED_MEMBERS: readonly string[] = Object.keys(members.shape)

type CheckedMembers = Pick<
  ChatRequest,
  | 'model'
  | 'stream'
  | 'includeUsage'
  | 'includeReasoning'
  | 'failover'
  | 'temperature'
  | 'maxTokens'
>

/**
 * Checks the scalar members and fills in their defaults. `max_completion_tokens` is another name of `max_tokens`; two
 * different values are refused, because it is unclear which one is meant.
 * @param valueNamed returns a member's value, undefined where it is absent or null
 * @throws ApiError invalid_request_error with the member's name, never its value
 */
export function checkMembers(valueNamed: (name: string) => unknown): CheckedMembers {
  const { shape } = members
  const read = <Schema extends z.ZodType>(name: string, schema: Schema) =>
    readMember(name, valueNamed(name), schema)
  const model = read('model', shape.model) ?? ''
  const stream = read('stream', shape.stream) ?? false
  const temperature = read('temperature', shape.temperature)
  const cap = read('max_tokens', shape.max_tokens)
  const alias = read('max_completion_tokens', shape.max_completion_tokens)
  const failover = read('failover', shape.failover) ?? []
  const includeReasoning = read('include_reasoning', shape.include_reasoning) ?? true
  const includeUsage = read('stream_options', shape.stream_options)?.include_usage ?? false
  if (cap !== undefined && alias !== undefined && cap !== alias) {
    throw invalid('max_completion_tokens', 'must not differ from "max_tokens"')
  }
  const maxTokens = cap ?? alias
  return { model, stream, includeUsage, includeReasoning, failover, temperature, maxTokens }
}

/**
 * Checks a single member: most members are absent from most requests, and one schema for all would spend time on those as
 * well.
 */
function readMember<Schema extends z.ZodType>(
  name: string,
  value: unknown,
  schema: Schema,
): z.output<Schema> | undefined {
  if (value === undefined) return undefined
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw invalid(name, result.error.issues[0]?.message ?? 'is invalid')
}

function invalid(param: string, reason: string): ApiError {
  return new ApiError('invalid_request_error', `"${param}" ${reason}.`, { param })
}
