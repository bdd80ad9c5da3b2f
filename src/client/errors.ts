import type { Check } from '../verify/check.ts'
import { withoutControls } from '../protocol/terminal-text.ts'

/** The base of this client's errors; `code` distinguishes them. Network errors are thrown unchanged. */
export class ClientError extends Error {
  readonly code: ClientErrorCode

  constructor(code: ClientErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

export type ClientErrorCode =
  | 'answer_refused'
  | 'attestation_refused'
  | 'attestation_unavailable'
  | 'bundle_state'
  | 'foreign_address'
  | 'invalid_options'
  | 'receipt_refused'
  | 'unsupported_runtime'

/**
 * The router's evidence fails a check: nothing of the request has left this machine.
 *
 * What to do: see `failed`; `tls_key` means that the connection does not end at the attested router.
 */
export class AttestationRefused extends ClientError {
  /** All checks that were made, including the failed ones. */
  readonly checks: readonly Check[]
  /** The names of the failed checks; where a document could not be parsed, its name. */
  readonly failed: readonly string[]

  constructor(checks: readonly Check[], unreadable?: { document: string; reason: string }) {
    const bad = checks.filter(({ ok }) => !ok)
    const reasons = [
      ...bad.map(({ name, detail }) => `${name}: ${detail}`),
      ...(unreadable === undefined ? [] : [`${unreadable.document}: ${unreadable.reason}`]),
    ]
    super('attestation_refused', `the router is not proven: ${withoutControls(reasons.join('; '))}`)
    this.checks = checks
    this.failed = [
      ...bad.map(({ name }) => name),
      ...(unreadable === undefined ? [] : [unreadable.document]),
    ]
  }
}

/** The router returned no evidence, so nothing was sent. A later attempt may succeed. */
export class AttestationUnavailable extends ClientError {
  /** The router's `Retry-After`, in seconds. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    message: string,
    options: ErrorOptions & { retryAfterSeconds?: number | undefined } = {},
  ) {
    super('attestation_unavailable', message, options)
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** An encrypted answer that was altered or truncated, or an answer that should be encrypted and is not. */
export class AnswerRefused extends ClientError {
  constructor(message: string, options?: ErrorOptions) {
    super('answer_refused', message, options)
  }
}

/** The receipt of an answer fails a check, or is missing where one is required. */
export class ReceiptRefused extends ClientError {
  readonly failed: readonly string[]

  constructor(failed: readonly string[], message: string) {
    super('receipt_refused', message)
    this.failed = failed
  }
}
