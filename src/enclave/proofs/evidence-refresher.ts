import type { ProviderProof } from '../../protocol/provider-proof.ts'
import type { ChannelEvidence } from '../proofs.ts'
import { EvidenceRefused } from '../../verify/evidence-refused.ts'
import { admitEvidence, type VerifiedEvidence } from '../adapters/verified-evidence.ts'
import { traceError, type ErrorTrace } from '../../protocol/error-trace.ts'
import { AdapterFailure } from '../isolated/adapter-failure.ts'
import type { LogFields } from '../log.ts'
import type { ObtainEvidence } from '../adapters/adapter.ts'

export interface RefresherDeps {
  readonly obtain: ObtainEvidence
  /** Called once, when the evidence is no longer needed. */
  readonly release?: () => void
  /** Milliseconds. */
  readonly now: () => number
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number
  readonly onVerified: (evidence: VerifiedEvidence) => void
  /** Called when the evidence in force has changed or is no longer valid. */
  readonly changed: () => void
  readonly log: (event: 'attestation_failed', fields: LogFields) => void
}

/**
 * The fraction of a proof's lifetime after which it is renewed. Up to a tenth is subtracted, so that providers are not
 * all renewed at once.
 */
const RENEW_AFTER = 0.8
const JITTER = 0.1

const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000
/** Node's timers are limited to 2^31 ms; every proof is far shorter. */
const MAX_WAIT_MS = 86_400_000

/** Timeout of a verification, ms. */
const VERIFY_MS = 60_000

/** The status of a provider without valid evidence. */
export const NO_EVIDENCE = {
  verified_at: null,
  expires_at: null,
  attestation_strength: null,
  evidence_sha256: null,
  checks: [],
} satisfies Partial<ProviderProof>

type ProofStatus = Omit<ProviderProof, 'provider' | 'adapter'>

/**
 * Maintains the proof of one provider: verified in advance, renewed before it expires, retried with growing pauses on
 * failure. During an outage the last proof stays valid until it expires; evidence that fails a check invalidates it at
 * once.
 */
export class EvidenceRefresher {
  readonly #deps: RefresherDeps
  #evidence: VerifiedEvidence | undefined
  #reason: string | undefined
  /** The names of the checks that the newest evidence failed. */
  #failedChecks: readonly string[] = []
  #failures = 0
  #pending: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(deps: RefresherDeps) {
    this.#deps = deps
  }

  /** Verified evidence that has not expired. */
  get current(): VerifiedEvidence | undefined {
    const end = (this.#evidence?.expires_at ?? 0) * 1000
    return this.#deps.now() < end ? this.#evidence : undefined
  }

  get standing(): ProofStatus {
    const { current } = this
    if (current !== undefined) {
      return {
        state: 'verified',
        reason: null,
        verified_at: timestamp(current.verified_at),
        expires_at: timestamp(current.expires_at),
        attestation_strength: current.attestation_strength,
        evidence_sha256: current.evidence_digest,
        checks: current.checks.map((name) => ({ name, ok: true })),
      }
    }
    const failed = this.#reason !== undefined
    if (failed) {
      const checks = this.#failedChecks.map((name) => ({ name, ok: false }))
      return { ...NO_EVIDENCE, state: 'failed', reason: this.#reason ?? null, checks }
    }
    return { ...NO_EVIDENCE, state: 'pending', reason: 'not verified yet' }
  }

  /** Verifies now; concurrent calls share one verification. Never rejects. */
  verify(): Promise<void> {
    this.#pending ??= this.#verify().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  /**
   * Verifies again because the peer holds another key, unless this evidence was already replaced.
   * @returns evidence in force afterwards
   */
  async reverify(stale: ChannelEvidence): Promise<VerifiedEvidence | undefined> {
    if (this.#isCurrent(stale)) {
      this.#giveUp('the peer holds another key than its evidence vouches for')
      await this.verify()
    } else if (this.current === undefined) await this.#pending
    return this.current
  }

  /** Stops using this evidence; the next verification follows after a pause. */
  distrust(evidence: ChannelEvidence): void {
    if (!this.#isCurrent(evidence)) return
    this.#giveUp('the peer changes its key faster than it proves it')
    this.#retryLater()
  }

  close(): void {
    this.#closed = true
    this.#deps.release?.()
    clearTimeout(this.#timer)
  }

  /** Compares by content, because the evidence may come from another thread. */
  #isCurrent(evidence: ChannelEvidence): boolean {
    const current = this.#evidence
    return (
      current !== undefined &&
      current.evidence_digest === evidence.evidence_digest &&
      current.binding.tls_spki_sha256 === evidence.binding.tls_spki_sha256 &&
      current.verified_at === evidence.verified_at
    )
  }

  #giveUp(reason: string): void {
    this.#evidence = undefined
    this.#reason = reason
    this.#failedChecks = ['tls_key']
    this.#deps.changed()
  }

  async #verify(): Promise<void> {
    const { obtain, now, random, onVerified, changed } = this.#deps
    try {
      const evidence = await admitEvidence(await within(obtain(), VERIFY_MS), now())
      if (this.#closed) return
      this.#evidence = evidence
      this.#reason = undefined
      this.#failures = 0
      onVerified(evidence)
      changed()
      const life = evidence.expires_at * 1000 - now()
      this.#schedule(life * (RENEW_AFTER - JITTER * random()))
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#closed) return
    const refused = error instanceof EvidenceRefused
    this.#reason = refused ? error.message : 'verification broke down'
    this.#failedChecks = refused ? failedChecks(error) : []
    this.#deps.log('attestation_failed', {
      reason: this.#reason,
      ...(refused ? {} : traceOf(error)),
    })
    if (!refused || !error.isOutage) this.#evidence = undefined
    this.#deps.changed()
    this.#retryLater()
  }

  #retryLater(): void {
    const wait = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, MAX_RETRY_MS)
    this.#failures = Math.min(this.#failures + 1, 10)
    this.#schedule(wait * (1 - JITTER * this.#deps.random()))
  }

  #schedule(waitMs: number): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    const wait = Math.min(Math.max(waitMs, 0), MAX_WAIT_MS)
    this.#timer = setTimeout(() => void this.verify(), wait)
    this.#timer.unref()
  }
}

/** The failed checks to report; where the refusal names none, its code stands for the check. */
function failedChecks({ code, checks, isOutage }: EvidenceRefused): readonly string[] {
  if (isOutage) return []
  return checks.length > 0 ? checks : [code]
}

function traceOf(error: unknown): ErrorTrace {
  return error instanceof AdapterFailure ? error.trace : traceError(error)
}

function timestamp(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}

async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timedOut = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new EvidenceRefused('unreachable')), ms)
    timer.unref()
  })
  try {
    return await Promise.race([work, timedOut])
  } finally {
    clearTimeout(timer)
  }
}
