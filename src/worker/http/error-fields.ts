import { traceError } from '../../protocol/error-trace.ts'
import type { LogFields } from './log.ts'
import { toApiError } from './to-api-error.ts'

/** What the log says of a thrown thing: the code the client is told, and where it came from if nobody foresaw it. */
export function errorFields(error: unknown): LogFields {
  const { code } = toApiError(error)
  return code === 'internal' ? { code, ...traceError(error) } : { code }
}
