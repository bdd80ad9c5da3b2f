import { z } from 'zod'
import { ApiError, type ErrorCode } from '../http/errors.ts'
import type { Operation } from '../http/operation.ts'

/**
 * `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header section 2.1): a string of RFC 9651, such as
 * `"8e03978e"`. Most clients omit the quotes, so a value without them is accepted as the content of the string.
 */
const HEADER = 'Idempotency-Key'

const MAX_CHARACTERS = 255

/** RFC 9651 section 3.3.3: printable ASCII, with a backslash before a quote or a backslash. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/
const BARE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+$/

/** The header for the interface description. */
export const IDEMPOTENCY_HEADER_DOC: NonNullable<Operation['headers']> = {
  [HEADER]: {
    description:
      'A value that the client makes for this one request, a UUID for example. A repeat of the request under the same ' +
      'value gets the same answer, with `Idempotency-Replayed: true`, and is not billed.',
    schema: z.string().min(1).max(MAX_CHARACTERS),
  },
}

/** The error codes of a request with the header. */
export const IDEMPOTENCY_ERRORS: readonly ErrorCode[] = [
  'invalid_parameter',
  'idempotency_in_progress',
  'answer_not_kept',
  'idempotency_key_reused',
]

/**
 * The idempotency key of a request, where it has one.
 * @throws ApiError invalid_parameter when it is malformed
 */
export function readIdempotencyKey(headers: Headers): string | undefined {
  const text = headers.get(HEADER)?.trim()
  if (text === undefined) return undefined
  const quoted = QUOTED.exec(text)?.[1]?.replaceAll(/\\(["\\])/g, '$1')
  const key = quoted ?? (BARE.test(text) ? text : '')
  if (key !== '' && key.length <= MAX_CHARACTERS) return key
  const message =
    `The header ${HEADER} must be one value of 1 to ${MAX_CHARACTERS} printable ASCII characters, ` +
    'in double quotes where it has spaces, commas or semicolons.'
  throw new ApiError('invalid_parameter', message, { param: HEADER })
}
