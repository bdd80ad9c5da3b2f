import { traceError } from '../../protocol/error-trace.ts'
import type { LogFields } from './log.ts'
import { toApiError } from './to-api-error.ts'

/**
 * The log fields of an error: the public code, and for unexpected errors also the class and the place in the code. Where
 * errors have no stacks (src/worker/index.ts), the place is missing.
 */
export function errorFields(error: unknown): LogFields {
  const { code } = toApiError(error)
  return code === 'internal' ? { code, ...traceError(error) } : { code }
}
