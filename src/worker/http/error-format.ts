import { KEY_CONFIG_PROBLEM, PROBLEM_TYPE } from '../../protocol/ehbp.ts'
import { anthropicErrorBody, anthropicStatus } from './anthropic-errors.ts'
import { ERROR_STATUS, errorBody, errorHeaders, type ApiError, type ErrorCode } from './errors.ts'
import { responsesErrorBody, responsesErrorHeaders, responsesStatus } from './responses-errors.ts'

/** Writes errors in one format. */
interface ErrorWriter {
  readonly statusOf: (code: ErrorCode) => number
  /** The error body, to be sent as JSON. */
  readonly bodyOf: (error: ApiError) => object
  readonly headersOf: (error: ApiError) => Readonly<Record<string, string>>
}

/** The formats of error answers. */
export const ERROR_WRITERS = {
  openai: {
    statusOf: (code) => ERROR_STATUS[code],
    bodyOf: errorBody,
    headersOf: errorHeaders,
  },
  responses: {
    statusOf: responsesStatus,
    bodyOf: responsesErrorBody,
    headersOf: responsesErrorHeaders,
  },
  anthropic: {
    statusOf: anthropicStatus,
    bodyOf: anthropicErrorBody,
    headersOf: errorHeaders,
  },
} as const satisfies Record<string, ErrorWriter>

export type ErrorFormat = keyof typeof ERROR_WRITERS

const FORMATS: readonly (readonly [RegExp, ErrorFormat])[] = [
  [/^\/v1\/messages(\/|$)/, 'anthropic'],
  [/^\/v1\/responses(\/|$)/, 'responses'],
]

/** The error format of a path, whether or not it is served. */
export function errorFormatAt(path: string): ErrorFormat {
  return FORMATS.find(([pattern]) => pattern.test(path))?.[1] ?? 'openai'
}

/** The parts of an error answer. */
export interface WrittenError {
  readonly status: number
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
}

export function writeError(error: ApiError, format: ErrorFormat): WrittenError {
  const written = inFormat(error, format)
  return error.code === 'key_config_mismatch' ? keyConfigProblem(error, written) : written
}

function inFormat(error: ApiError, format: ErrorFormat): WrittenError {
  const { statusOf, bodyOf, headersOf }: ErrorWriter = ERROR_WRITERS[format]
  return { status: statusOf(error.code), body: bodyOf(error), headers: headersOf(error) }
}

/** The same error as a problem document (RFC 9457), which tells EHBP clients to fetch the current key. */
function keyConfigProblem({ message }: ApiError, written: WrittenError): WrittenError {
  return {
    status: written.status,
    body: { ...written.body, type: KEY_CONFIG_PROBLEM, title: message },
    headers: { ...written.headers, 'content-type': PROBLEM_TYPE },
  }
}
