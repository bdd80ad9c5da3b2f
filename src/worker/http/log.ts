import type { ErrorTrace } from '../../protocol/error-trace.ts'

/**
 * The structured log. The type allows only listed fields with short values, so a prompt, a completion, a key or a
 * provider's wording cannot be passed to it.
 */
/** An unexpected error is named by class, code and place, never by its message. */
export interface LogFields extends Partial<ErrorTrace> {
  readonly request_id?: string
  readonly method?: string
  /** The name of the matched endpoint, never the raw path. */
  readonly endpoint?: string
  readonly status?: number
  readonly code?: string
  readonly route?: string
  /** What a settled exchange was: `chat`, `transcription` or `embedding`. */
  readonly modality?: string
  readonly attempt?: number
  readonly failure?: string
  readonly failover?: boolean
  readonly duration_ms?: number
  readonly first_delta_ms?: number
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly receipt?: boolean
  /** When the receipt was signed: `with_answer`, `afterwards`, or `not` at all. */
  readonly signed?: string
  /** Nano-EUR. */
  readonly cost_nano?: number
  readonly generation?: number
  readonly count?: number
}

export type Log = (event: LogEvent, fields?: LogFields) => void

/** Every event the worker logs. */
export type LogEvent =
  | 'request'
  | 'attempt_failed'
  | 'attempt_served'
  /** A stream ended early after its delivery had begun. */
  | 'stream_cut'
  | 'settled'
  | 'settle_failed'
  /** A stream failed after its headers were sent; the client received an error event. */
  | 'stream_failed'
  /** A reservation could not be released; it stays open until the sweep releases it. */
  | 'release_failed'
  | 'usage_estimated'
  /** A provider reported more usage than the request can have caused. */
  | 'usage_capped'
  /** The storage refused a settlement, which was quarantined for the operator. */
  | 'settle_quarantined'
  /** A repeat with the same `Idempotency-Key` got the kept answer. */
  | 'answer_replayed'
  /**
   * A kept answer cannot be decrypted, because it was changed in the storage. The request is neither served again nor billed
   * again.
   */
  | 'kept_answer_unreadable'
  /** A webhook could not be delivered; it is retried. */
  | 'webhook_failed'
  | 'config_loaded'
  | 'link_unavailable'
  /**
   * The connection for small calls to the daemon (`link_chunks_ended` for chunks, else `link_messages_ended`) or to the
   * ledger process ended, with `count` open calls. Calls of providers and of the ledger that had been sent have failed.
   */
  | 'link_chunks_ended'
  | 'link_messages_ended'
  | 'storage_unavailable'
  /** An operation waited for a customer's row that another transaction kept locked (PostgreSQL). */
  | 'row_waited'
  /** An action of an operator was carried out, but its outcome could not be written to the audit log. */
  | 'audit_outcome_lost'
  | 'sweep'
