/** How long after its attestation a document may use a nonce, ms. */
const NONCE_TTL_MS = 600_000

/** Far more than the daemon attests in that time. */
const MAX_NONCES = 4_096

/** The nonces that this instance attested recently, each valid for one document. */
export class NonceMemory {
  readonly #now: () => number
  /** Nonce to the time of its attestation, oldest first. */
  readonly #attested = new Map<string, number>()

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  remember(nonce: string): void {
    this.#attested.delete(nonce)
    this.#attested.set(nonce, this.#now())
    const [oldest] = this.#attested.keys()
    if (this.#attested.size > MAX_NONCES && oldest !== undefined) this.#attested.delete(oldest)
  }

  /** Whether the nonce was attested recently and not used yet; marks it as used. */
  take(nonce: string): boolean {
    const at = this.#attested.get(nonce)
    this.#attested.delete(nonce)
    return at !== undefined && this.#now() - at < NONCE_TTL_MS
  }
}
