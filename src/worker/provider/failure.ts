import type { Bytes } from '../../protocol/bytes.ts'
import type { AnswerHeaders } from '../link/link-answer.ts'
import { invalidField, refusalKind, mentionsModeration, type RefusalKind } from './refusal.ts'
import { parseRetryAfter } from './retry-after.ts'

/** Why a provider did not serve an attempt: kinds and numbers, never the provider's text. */
export interface Failure {
  readonly kind: FailureKind
  /** The provider's HTTP status, if it answered. */
  readonly status?: number
  /** The provider's `Retry-After`. */
  readonly retryAfterMs?: number
  /** No byte of an answer arrived, so the request may be sent again. */
  readonly unanswered?: boolean
  /** The router itself could not make the call, which says nothing about the provider. */
  readonly isOwn?: boolean
}

export type FailureKind =
  /** Out of service: 502, 503, 504, 529 and similar, or no connection. */
  | 'unavailable'
  /** The daemon refused to connect because the provider has no verified evidence. Clients see it as `unavailable`. */
  | 'attestation_failed'
  /** The provider does not meet what the caller requires; nothing was sent. */
  | 'attestation_not_accepted'
  | 'rate_limited'
  /** One of the router's own timeouts. */
  | 'timeout'
  /** The operator's account or configuration is rejected: the route counts as unavailable. */
  | 'unauthorized_upstream'
  /** Anything else: 500, an error in a 200, an invalid answer. */
  | 'unclassified'
  /** The provider rejected the request itself. */
  | RefusalKind
  /** Transcription: the provider could not use the file. */
  | 'file_rejected'
  | 'file_too_large'
  | 'file_type_rejected'

/** Ends an attempt. The message contains only the kind and the status. */
export class AttemptFailure extends Error {
  override readonly name = 'AttemptFailure'
  readonly failure: Failure

  constructor(failure: Failure) {
    super(
      `attempt failed: ${failure.kind}${failure.status === undefined ? '' : ` ${failure.status}`}`,
    )
    this.failure = failure
  }
}

/** A failure without any information about its cause: a connection broke, or a timeout passed. */
export class SilentFailure extends AttemptFailure {}

/**
 * Failure kinds by status, on every endpoint. 408 and 425 ask for a later retry, like 503; with 521 to 524 a proxy in front
 * of a provider reports a connection that was refused, lost or timed out.
 */
const STATUS_KINDS: Readonly<Record<number, FailureKind>> = {
  401: 'unauthorized_upstream',
  402: 'unauthorized_upstream',
  403: 'unauthorized_upstream',
  404: 'unauthorized_upstream',
  405: 'unauthorized_upstream',
  408: 'unavailable',
  425: 'unavailable',
  429: 'rate_limited',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
  521: 'unavailable',
  522: 'unavailable',
  523: 'unavailable',
  524: 'unavailable',
  529: 'unavailable',
}

/** Statuses that reject the request; the body says why. */
const REFUSAL_STATUSES: ReadonlySet<number> = new Set([400, 413, 422])

/** Missing permission; some providers also use it for moderation. */
const FORBIDDEN = 403

/** Classifies the answer to a chat attempt whose status is not 200. `body` may be cut off; 64 KiB are enough. */
export function classifyResponse(
  status: number,
  headers: AnswerHeaders,
  body: Bytes,
  now: number,
): Failure {
  const kind = REFUSAL_STATUSES.has(status) ? refusalKind(body) : forbiddenOr(status, body)
  return { kind, status, ...wait(headers, now) }
}

const FILE_STATUSES: Readonly<Record<number, FailureKind>> = {
  413: 'file_too_large',
  415: 'file_type_rejected',
}

/** Form fields other than the file; a refusal that names one of them does not concern the file. */
const OTHER_FIELDS: ReadonlySet<string> = new Set([
  'language',
  'model',
  'prompt',
  'response_format',
  'temperature',
])

/** Classifies the answer to a transcription attempt whose status is not 200. */
export function classifyTranscriptionResponse(
  status: number,
  headers: AnswerHeaders,
  body: Bytes,
  now: number,
): Failure {
  const kind = FILE_STATUSES[status] ?? fileRefusal(status, body) ?? forbiddenOr(status, body)
  return { kind, status, ...wait(headers, now) }
}

function fileRefusal(status: number, body: Bytes): FailureKind | undefined {
  if (status !== 400 && status !== 422) return undefined
  return OTHER_FIELDS.has(invalidField(body) ?? '') ? 'unclassified' : 'file_rejected'
}

function forbiddenOr(status: number, body: Bytes): FailureKind {
  if (status === FORBIDDEN && mentionsModeration(body)) return 'content_policy'
  return STATUS_KINDS[status] ?? 'unclassified'
}

function wait(headers: AnswerHeaders, now: number): Pick<Failure, 'retryAfterMs'> {
  const retryAfterMs = parseRetryAfter(headers, now)
  return retryAfterMs === undefined ? {} : { retryAfterMs }
}
