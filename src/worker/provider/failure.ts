import type { Bytes } from '../../protocol/bytes.ts'
import { invalidField, refusalKind, mentionsModeration, type RefusalKind } from './refusal.ts'
import { parseRetryAfter } from './retry-after.ts'

/** Why a provider did not serve an attempt. Kinds and numbers only, never a word of the provider's. */
export interface Failure {
  readonly kind: FailureKind
  /** The provider's HTTP status, where it answered. */
  readonly status?: number
  /** How long the provider asks to wait. */
  readonly retryAfterMs?: number
  /** No byte of an answer came, so the request may be sent again. */
  readonly unanswered?: boolean
}

export type FailureKind =
  /** Out of service for now: 502, 503, 504, 529 and their like, or no connection. */
  | 'unavailable'
  /** The daemon would not connect: the provider has no verified evidence. For the client as `unavailable`. */
  | 'attestation_failed'
  /** The provider does not meet what the caller requires; nothing was sent. */
  | 'attestation_not_accepted'
  | 'rate_limited'
  /** One of the router's own clocks ran out. */
  | 'timeout'
  /** The operator's account or configuration is at fault: the route is as good as unavailable. */
  | 'unauthorized_upstream'
  /** Everything else: 500, an error in a 200, garbage. */
  | 'unclassified'
  /** The provider found the request itself at fault. */
  | RefusalKind
  /** Transcription: the provider could not use the file. */
  | 'file_rejected'
  | 'file_too_large'
  | 'file_type_rejected'

/** Ends an attempt. The message tells the kind and the status alone. */
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

/**
 * What statuses mean on every endpoint. 408 and 425 ask for a later try as 503 does; 521 to 524 are how a
 * proxy in front of a provider reports a connection that was refused, lost or timed out.
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

/** Statuses about the request itself; what exactly was refused stands in the body. */
const REFUSAL_STATUSES: ReadonlySet<number> = new Set([400, 413, 422])

/** The status of a missing right, and of some providers' moderation. */
const FORBIDDEN = 403

/** What a provider's answer other than 200 means for a chat attempt. `body` may be cut; 64 KiB are enough. */
export function classifyResponse(
  status: number,
  headers: Headers,
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

/** Form fields beside the file; a refusal that blames one of them is no verdict on the file. */
const OTHER_FIELDS: ReadonlySet<string> = new Set([
  'language',
  'model',
  'prompt',
  'response_format',
  'temperature',
])

/** What a provider's answer other than 200 means for a transcription attempt. */
export function classifyTranscriptionResponse(
  status: number,
  headers: Headers,
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

function wait(headers: Headers, now: number): Pick<Failure, 'retryAfterMs'> {
  const retryAfterMs = parseRetryAfter(headers, now)
  return retryAfterMs === undefined ? {} : { retryAfterMs }
}
