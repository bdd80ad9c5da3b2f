import type { ErrorFormat } from '../http/error-format.ts'
import { LIMIT_ANSWER_HEADERS } from '../http/headers-doc.ts'
import type { AnswerHeaders, Operation } from '../http/operation.ts'

type Json = Readonly<Record<string, unknown>>

const REQUEST_ID = {
  description: 'UUID of the request; also the id of its usage row.',
  schema: { type: 'string', format: 'uuid' },
}

/** The headers that every answer carries. */
function everywhere(format: ErrorFormat): Json {
  const ownName = format === 'anthropic' && { 'request-id': REQUEST_ID }
  return { 'x-request-id': REQUEST_ID, ...ownName }
}

const RETRY_AFTER: AnswerHeaders = {
  'retry-after': 'Whole seconds, 1 to 59, where the wait is known; on every 429.',
}
const RETRY_AFTER_MS: AnswerHeaders = {
  'retry-after-ms': 'Milliseconds, where the wait is known.',
}
const SHOULD_RETRY: AnswerHeaders = {
  'x-should-retry': '`false` where the same request would get the same answer.',
}

/** The headers that tell clients when to retry, by the status of the error. */
const ERROR_HEADERS: Readonly<Record<number, AnswerHeaders>> = {
  401: SHOULD_RETRY,
  409: RETRY_AFTER,
  429: RETRY_AFTER,
  503: { ...RETRY_AFTER, ...SHOULD_RETRY },
  529: RETRY_AFTER,
}

/** The headers of errors in formats that differ from `ERROR_HEADERS`. */
const FORMAT_HEADERS: Partial<Record<ErrorFormat, Readonly<Record<number, AnswerHeaders>>>> = {
  responses: { 503: { ...RETRY_AFTER_MS, ...SHOULD_RETRY } },
}

/** The described headers of an answer with 200. */
export function answerHeaders(format: ErrorFormat, { answerHeaders: own = {} }: Operation): Json {
  return described(format, own)
}

/** The described headers of an error. */
export function errorHeaders(status: number, format: ErrorFormat, operation: Operation): Json {
  const isLimit = status === 429 && operation.answerHeaders !== undefined
  return described(format, {
    ...(FORMAT_HEADERS[format]?.[status] ?? ERROR_HEADERS[status]),
    ...(isLimit && LIMIT_ANSWER_HEADERS),
  })
}

function described(format: ErrorFormat, headers: AnswerHeaders): Json {
  const texts = Object.entries(headers).map(
    ([name, description]) => [name, { description, schema: { type: 'string' } }] as const,
  )
  return { ...everywhere(format), ...Object.fromEntries(texts) }
}
