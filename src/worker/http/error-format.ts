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
  const headers = errorHeaders(error)
  return format === 'openai'
    ? { status: error.status, body: errorBody(error), headers }
    : { status: anthropicStatus(error.code), body: anthropicErrorBody(error), headers }
}
