import type { Database } from '../storage/database.ts'
import { keptBytes } from './claims.ts'

/** How long a sum is cached, ms. What is added meanwhile is bounded by the answers that the router can give in that time. */
const KNOWN_FOR_MS = 10_000

/** Tracks approximately how many bytes of answers are kept for repeats. */
export class KeptAnswers {
  readonly #now: () => number
  #known: { readonly bytes: number; readonly at: number } | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Whether the answers that are kept take less than `maxBytes`.
   * @throws StorageUnavailable when the storage does not answer
   */
  async hasRoom(directory: Database, maxBytes: number): Promise<boolean> {
    const now = this.#now()
    if (this.#known === undefined || Math.abs(now - this.#known.at) >= KNOWN_FOR_MS) {
      this.#known = { bytes: await keptBytes(directory), at: now }
    }
    return this.#known.bytes < maxBytes
  }
}
