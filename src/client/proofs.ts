import type { Proof } from './proof.ts'

/**
 * The proven hosts, by their TLS key. Connections that see the same key at the same time share one verification, and
 * a proven key costs nothing: its holder is the host that was proven.
 */
export class Proofs {
  readonly #now: () => number
  readonly #proven = new Map<string, Proof>()
  readonly #proving = new Map<string, Promise<Proof>>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** The proof of a key that is in force, from `prove` where there is none. */
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

  /** Those in force. */
  current(): Proof[] {
    return [...this.#proven.values()].filter(({ expiresAt }) => expiresAt > this.#now())
  }

  /** Has every host proven anew. */
  forget(): void {
    this.#proven.clear()
  }
}
