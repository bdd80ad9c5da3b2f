/** Why evidence was not accepted. The texts are shown to operators and must never contain the provider's own text. */
const REFUSALS = {
  plain_http: 'the address is not https, so no connection can be bound to evidence',
  unreachable: 'the provider did not answer with its evidence',
  service_unreachable: 'a service that verification needs did not answer',
  too_large: 'a document is larger than any honest one',
  exhausting: 'judging the evidence took more time or memory than any honest evidence does',
  malformed: 'a document cannot be read',
  unknown_format: 'a document is of no format this adapter knows',
  hardware: 'the hardware evidence does not hold',
  trust_bundle: 'the trust bundle is not accepted',
  nonce: 'the evidence was not made for our nonce',
  tls_key: 'the evidence vouches for another TLS key than the connection has',
  no_binding: 'the evidence binds no TLS key, so nothing ties a connection to it',
  measurement: 'the measurement is not one the operator allows',
  provenance: "the public record of the release's build does not hold",
  launch_binding: 'the guest was started with data beside its measurement that is not pinned',
  compose_hash: 'the workload is not one the operator allows, or is not the one measured',
  event_log: 'the event log does not add up to the measured register',
  tcb_status: 'the platform is in a state the operator does not allow',
  debug: 'the guest can be debugged by its host',
  models: 'what stands behind a gateway does not hold',
  gpu: 'the GPU evidence does not hold',
  expired: 'the evidence has no time left',
} as const

export type RefusalCode = keyof typeof REFUSALS

/** Evidence that fails a check or cannot be obtained. Consequence: nothing is sent to this provider. */
export class EvidenceRefused extends Error {
  readonly code: RefusalCode
  readonly checks: readonly string[]

  /** `checks` are names of checks of this project; besides the code nothing else may be included. */
  constructor(code: RefusalCode, checks: readonly string[] = [], options?: ErrorOptions) {
    super(REFUSALS[code] + (checks.length > 0 ? ` (${checks.join(', ')})` : ''), options)
    this.name = 'EvidenceRefused'
    this.code = code
    this.checks = checks
  }

  /** Whether a retry may help and nothing contradicts the evidence that was verified before. */
  get isOutage(): boolean {
    return this.code === 'unreachable' || this.code === 'service_unreachable'
  }
}
