import { z } from 'zod'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import { attestationOfBody } from '../http/attestation-member.ts'
import { CheckedMember } from '../completion/checked-member.ts'
import { OF_EMBEDDINGS } from '../completion/few-values.ts'
import { parseBodyObject, requireMembers, sortMembers } from '../completion/member-rules.ts'
import { failoverSchema, MAX_FAILOVERS } from '../completion/request-members.ts'
import { isText } from '../completion/list-schema.ts'
import { ApiError } from '../http/errors.ts'
import { utf8Length } from '../stream/message-text.ts'
import type { JsonObject } from '../stream/json-object.ts'
import { EMBEDDINGS_RULES } from './members.ts'
import { estimateTextTokens } from '../stream/estimate-text.ts'

/** A parsed request to `/v1/embeddings`. */
export interface EmbeddingsRequest {
  readonly model: string
  readonly failover: readonly string[]
  /** The constraints on the provider. */
  readonly constraints: Constraints | undefined
  /** Number of requested vectors. */
  readonly inputs: number
  readonly base64: boolean
  readonly dimensions: number | undefined
  /** UTF-8 bytes of the texts. */
  readonly textBytes: number
  /** Number of token ids that were given instead of texts. */
  readonly tokenIds: number
  /** The router's own estimate of the prompt. */
  readonly promptEstimate: number
  /** The members that are sent to the provider, except the model. */
  readonly forwarded: JsonObject
  readonly dropped: readonly string[]
}

/** The batch size of the known SDKs; a route may have a lower limit. */
const MAX_INPUTS = 2048

const input = new CheckedMember(
  'input',
  z.custom<string | number[] | string[] | number[][]>(
    (value) =>
      isFilledText(value) ||
      isListOf(value, isTokenId) ||
      isListOf(value, isFilledText) ||
      isListOf(value, isTokenList),
  ),
  'a text, a list of texts, a list of token ids or a list of such lists, none of them empty',
)
const model = new CheckedMember('model', z.string(), 'a string')
const encoding = new CheckedMember(
  'encoding_format',
  z.enum(['float', 'base64']),
  'float or base64',
)
const dimensions = new CheckedMember(
  'dimensions',
  z.int().min(1).max(65_536),
  'a whole number from 1 to 65536',
)
const user = new CheckedMember('user', z.string(), 'a string')
const failover = new CheckedMember(
  'failover',
  failoverSchema,
  `a list of at most ${MAX_FAILOVERS} route selectors`,
)

/**
 * Reads a request to `/v1/embeddings`.
 * @throws ApiError missing_field for `model` and `input`, else invalid_request_error; none quotes the body
 */
export function parseEmbeddingsRequest(bytes: Bytes): EmbeddingsRequest {
  const body = parseBodyObject(bytes, OF_EMBEDDINGS)
  const { mapped, dropped } = sortMembers(body, EMBEDDINGS_RULES)
  requireMembers(mapped, ['model', 'input'])
  const read = input.read(mapped['input'])
  const inputs = inputsOf(read)
  if (inputs.length > MAX_INPUTS) {
    const message = `"input" must have at most ${MAX_INPUTS} entries.`
    throw new ApiError('invalid_request_error', message, { param: 'input' })
  }
  const textBytes = sumOf(inputs, (one) => (typeof one === 'string' ? utf8Length(one) : 0))
  const tokenIds = sumOf(inputs, (one) => (typeof one === 'string' ? 0 : one.length))
  const format = encoding.optional(mapped['encoding_format'])
  const wanted = dimensions.optional(mapped['dimensions'])
  const endUser = user.optional(mapped['user'])
  return {
    model: model.read(mapped['model']),
    failover: failover.optional(mapped['failover']) ?? [],
    constraints: attestationOfBody(bytes, body),
    inputs: inputs.length,
    base64: format === 'base64',
    dimensions: wanted,
    textBytes,
    tokenIds,
    promptEstimate: estimateTextTokens(textBytes) + tokenIds,
    forwarded: {
      input: read,
      ...(format !== undefined && { encoding_format: format }),
      ...(wanted !== undefined && { dimensions: wanted }),
      ...(endUser !== undefined && { user: endUser }),
    },
    dropped,
  }
}

type Input = ReturnType<typeof input.read>
type OneInput = string | readonly number[]

function isFilledText(value: unknown): boolean {
  return isText(value) && value !== ''
}

function isTokenId(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isTokenList(value: unknown): boolean {
  return isListOf(value, isTokenId)
}

/** Stops at the first invalid element, as in `list-schema.ts`. */
function isListOf(value: unknown, isElement: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => isElement(one))
}

/** The individual inputs, each of which becomes a vector. */
function inputsOf(value: Input): readonly OneInput[] {
  if (typeof value === 'string') return [value]
  const isTokens = value.every((one) => typeof one === 'number')
  return isTokens ? [value] : value.filter((one) => typeof one !== 'number')
}

function sumOf(inputs: readonly OneInput[], count: (one: OneInput) => number): number {
  return inputs.reduce((sum, one) => sum + count(one), 0)
}
