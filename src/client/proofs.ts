import type { Proof } from './proof.ts'

/**
 * The verified hosts, by their TLS key. Concurrent connections with the same key share one verification, and a verified
 * key is not verified again while its proof is valid.
 */
export class Proofs {
  readonly #now: () => number
  readonly #proven = new Map<string, Proof>()
  readonly #proving = new Map<string, Promise<Proof>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns the valid proof of a key, or obtains one with `prove`. */
  obtain(key: string, prove: () => Promise<Proof>): Promise<Proof> {
    const known = this.#proven.get(key)
    if (known !== undefined && known.expiresAt > this.#now()) return Promise.resolve(known)
    const running = this.#proving.get(key)
    if (running !== undefined) return running
    const proving: Promise<Proof> = prove()
      .then((proof) => {
        if (this.#proving.get(key) === proving) this.#proven.set(key, proof)
        return proof
      })
      .finally(() => {
        if (this.#proving.get(key) === proving) this.#proving.delete(key)
      })
    this.#proving.set(key, proving)
    return proving
  }

  /** The valid proofs. */
  current(): Proof[] {
    return [...this.#proven.values()].filter(({ expiresAt }) => expiresAt > this.#now())
  }

  /** Drops this proof of a key, unless another proof has replaced it. */
  drop(key: string, proof: Proof): void {
    if (this.#proven.get(key) === proof) this.#proven.delete(key)
  }

  /**
   * Drops all proofs, so that every host is verified again. Verifications in progress then serve only the callers that
   * already wait for them: the router decides how long its answer takes, and their nonce may be a minute old.
   */
  forget(): void {
    this.#proven.clear()
    this.#proving.clear()
  }
}
