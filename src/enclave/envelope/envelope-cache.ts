import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { LinkError } from '../link-error.ts'
import { ENVELOPE_MAX_AGE_SECONDS, type ServedEnvelope } from './build-envelope.ts'
import { createNonceBudget } from './nonce-budget.ts'
import type { SelfCheck } from './self-check.ts'

/** Half of the time for which clients may rely on an envelope, so that a fetched one stays valid for long enough. */
const REFRESH_MS = (ENVELOPE_MAX_AGE_SECONDS * 1000) / 2
const RETRY_MS = 30_000

/** While captures fail, callers get the last failure for this long, instead of each asking the firmware again, ms. */
const FAILURE_SHARED_MS = 2_000

const NONCES = { perSource: 10, inAll: 60, windowMs: 60_000 }

/** Maximum number of former envelopes that the worker can request by digest; about 10 KiB each. */
const MAX_CACHED_ENVELOPES = 64

/** An envelope of this instance, and the result of the daemon's own verification. */
export interface CachedEnvelope extends ServedEnvelope {
  readonly check: SelfCheck
}

export interface EnvelopeDeps {
  /** Captures for a nonce of 64 hex digits. */
  readonly buildFresh: (nonce: string) => Promise<ServedEnvelope>
  /** Captures an envelope and verifies it. */
  readonly make: () => Promise<CachedEnvelope>
  readonly now: () => number
  readonly onFailure: (reason: string) => void
  readonly onRestored: () => void
  /** Called when a new envelope is in service. */
  readonly onKept?: () => void
}

/**
 * Holds the current envelope. It is captured at the start, again whenever something that it binds changes, and
 * periodically. If the platform fails, the last envelope stays in service until it expires; after that there is none.
 */
export class EnvelopeCache {
  readonly #deps: EnvelopeDeps
  readonly #nonceBudget = createNonceBudget(NONCES)
  readonly #kept = new Map<string, Bytes>()
  #current: CachedEnvelope | undefined
  #pending: Promise<CachedEnvelope> | undefined
  #failure: { readonly at: number; readonly error: unknown } | undefined
  #timer: NodeJS.Timeout | undefined
  /** Counts changes of the bound values. */
  #epoch = 0
  #closed = false

  constructor(deps: EnvelopeDeps) {
    this.#deps = deps
  }

  /** The last envelope, of any age: its binding holds for the lifetime of the keys. */
  get last(): CachedEnvelope | undefined {
    return this.#current
  }

  /** The last envelope while clients may still rely on it. */
  get current(): CachedEnvelope | undefined {
    const age = this.#deps.now() - (this.#current?.capturedAt ?? 0)
    return age < ENVELOPE_MAX_AGE_SECONDS * 1000 ? this.#current : undefined
  }

  /**
   * The cached envelope, captured now if there is none.
   * @throws LinkError `attestation_unavailable` when the capture fails
   */
  async get(): Promise<CachedEnvelope> {
    if (this.current !== undefined) return this.current
    const failedFor = this.#deps.now() - (this.#failure?.at ?? Number.NEGATIVE_INFINITY)
    if (failedFor < FAILURE_SHARED_MS) throw unavailable(this.#failure?.error)
    try {
      return await this.refresh()
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * An envelope for the caller's nonce (64 lowercase hex digits), never cached.
   * @param source whose nonce budget is charged
   * @throws LinkError `rate_limited` when the budget is used up, `attestation_unavailable` when the capture fails
   */
  async fresh(nonce: string, source: string): Promise<ServedEnvelope> {
    if (!this.#nonceBudget(source, this.#deps.now())) {
      const { perSource, inAll } = NONCES
      const message = `at most ${perSource} nonces a minute of one source, and ${inAll} of all`
      throw new LinkError('rate_limited', message)
    }
    try {
      return await this.#deps.buildFresh(nonce)
    } catch (error) {
      throw unavailable(error)
    }
  }

  /**
   * Captures now; concurrent callers share one capture.
   * @throws CaptureError when the platform gives no valid report with certificates
   */
  refresh(): Promise<CachedEnvelope> {
    this.#pending ??= this.#capture().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  /** Puts an envelope for the new binding into service. */
  adopt(envelope: CachedEnvelope): void {
    this.#epoch++
    this.#keep(envelope)
  }

  /** The exact bytes of a cached envelope of this instance, current or former. */
  find(sha256: string): Bytes | undefined {
    return this.#kept.get(sha256)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  async #capture(): Promise<CachedEnvelope> {
    const epoch = this.#epoch
    try {
      const envelope = await this.#deps.make()
      // The binding may have been replaced since the capture began.
      if (epoch !== this.#epoch && this.#current !== undefined) return this.#current
      this.#keep(envelope)
      return envelope
    } catch (error) {
      if (this.#failure === undefined) this.#deps.onFailure(messageOf(error))
      this.#failure = { at: this.#deps.now(), error }
      this.#schedule(RETRY_MS)
      throw error
    }
  }

  #keep(envelope: CachedEnvelope): void {
    if (this.#failure !== undefined) this.#deps.onRestored()
    this.#failure = undefined
    this.#current = envelope
    this.#kept.set(envelope.sha256, utf8(envelope.json))
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MAX_CACHED_ENVELOPES && oldest !== undefined) this.#kept.delete(oldest)
    this.#schedule(REFRESH_MS)
    this.#deps.onKept?.()
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.refresh().catch(() => {})
    }, delayMs)
    this.#timer.unref()
  }
}

function unavailable(cause: unknown): LinkError {
  return new LinkError('attestation_unavailable', messageOf(cause), { cause })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the report could not be captured'
}
