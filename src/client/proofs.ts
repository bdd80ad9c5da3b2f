import type { Proof } from './proof.ts'

/**
 * The verified hosts, by their TLS key. Concurrent connections with the same key share one verification, and a verified
 * key needs no further one.
 */
export class Proofs {
  readonly #now: () => number
  readonly #proven = new Map<string, Proof>()
  readonly #proving = new Map<string, Promise<Proof>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** The valid proof of a key, from `prove` where there is none. */
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

  /** Drops this proof of a key, where no other one has taken its place. */
  drop(key: string, proof: Proof): void {
    if (this.#proven.get(key) === proof) this.#proven.delete(key)
  }

  /**
   * Drops all proofs, so that every host is verified again. Those that are being made answer only who waits for them already:
   * the router decides how long its answer takes, and their nonce may be a minute old.
   */
  forget(): void {
    this.#proven.clear()
    this.#proving.clear()
  }
}
