import type { ErrorTrace } from '../protocol/error-trace.ts'

/**
 * The daemon's log. As in the worker, fields are an allow-list by type and contain names, codes and positions, so
 * that no prompt, key or text of a provider can be logged.
 */
export interface LogFields extends Partial<ErrorTrace> {
  readonly provider?: string
  /** Why evidence was not accepted: a message of this program, never the provider's text. */
  readonly reason?: string
  /** The path of the link's route, without the rest of the request's path. */
  readonly path?: string
}

export type LogEvent =
  /** A call over the link ended in an unexpected error. */
  | 'link_failed'
  /** The evidence of a provider was refused or could not be obtained. */
  | 'attestation_failed'
  /** An unseal document was refused, for `reason`. */
  | 'unseal_refused'
  | 'unsealed'
  /**
   * The limit of streams that are open or not settled is reached, so workers write the chunks of further ones
   * themselves.
   */
  | 'streams_left_to_workers'
  /** The clock went back, for `reason`. */
  | 'clock_behind'
  /** Background work ended in an unexpected error. */
  | 'unexpected_error'

export type Log = (event: LogEvent, fields: LogFields) => void

/**
 * Writes one JSON line per event to standard output, which is the daemon's log file.
 * @param now milliseconds
 */
export function jsonLog(now: () => number, write: (line: string) => void): Log {
  return (event, fields) => {
    write(`${JSON.stringify({ at: new Date(now()).toISOString(), event, ...fields })}\n`)
  }
}
