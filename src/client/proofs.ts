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
    const proving = prove()
      .then((proof) => {
        this.#proven.set(key, proof)
        return proof
      })
      .finally(() => this.#proving.delete(key))
    this.#proving.set(key, proving)
    return proving
  }

  /** The valid proofs. */
  current(): Proof[] {
    return [...this.#proven.values()].filter(({ expiresAt }) => expiresAt > this.#now())
  }

  /** Drops all proofs, so that every host is verified again. */
  forget(): void {
    this.#proven.clear()
  }
}
