import { KEY_CONFIG_PROBLEM, PROBLEM_TYPE } from '../../protocol/ehbp.ts'
import { anthropicErrorBody, anthropicStatus } from './anthropic-errors.ts'
import { errorBody, errorHeaders, type ApiError } from './errors.ts'

/** The formats of error answers. */
export type ErrorFormat = 'openai' | 'anthropic'

/** The format of errors at a path, whether or not anything is served there. */
export function errorFormatAt(path: string): ErrorFormat {
  return /^\/v1\/messages(\/|$)/.test(path) ? 'anthropic' : 'openai'
}

/** An error as an answer, for whatever writes it. */
export interface WrittenError {
  readonly status: number
  /** To be sent as JSON. */
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
}

export function writeError(error: ApiError, format: ErrorFormat): WrittenError {
  const written = inFormat(error, format)
  return error.code === 'key_config_mismatch' ? keyConfigProblem(error, written) : written
}

function inFormat(error: ApiError, format: ErrorFormat): WrittenError {
  const headers = errorHeaders(error)
  return format === 'openai'
    ? { status: error.status, body: errorBody(error), headers }
    : { status: anthropicStatus(error.code), body: anthropicErrorBody(error), headers }
}

/** The same as a problem document (RFC 9457), by which clients of EHBP know that they need the current key. */
function keyConfigProblem({ message }: ApiError, written: WrittenError): WrittenError {
  return {
    status: written.status,
    body: { ...written.body, type: KEY_CONFIG_PROBLEM, title: message },
    headers: { ...written.headers, 'content-type': PROBLEM_TYPE },
  }
}
