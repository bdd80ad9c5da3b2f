import type { PresentedKey } from './api-key.ts'

/** How long a secret is kept in clear text, ms, so that its next request needs no hashing. */
const KEPT_MS = 10_000
const MAX_TEXTS = 10_000

/** Expired secrets are removed together, at the latest this long after the first of them expired, ms. */
const FORGET_EVERY_MS = 1_000

export interface KeyTextCacheDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Keeps the current request alive until this work has ended, even after its own answer is sent. */
  readonly keepAlive: (work: Promise<unknown>) => void
}

interface Entry {
  readonly key: PresentedKey
  /** When it was added, ms since the epoch. */
  readonly at: number
}

/** The keys of the last seconds by their whole text, oldest first. */
export class KeyTextCache {
  readonly #deps: KeyTextCacheDeps
  readonly #entries = new Map<string, Entry>()
  /** When the last removal was scheduled, ms since the epoch. */
  #arrangedAt = Number.NEGATIVE_INFINITY

  constructor(deps: KeyTextCacheDeps) {
    this.#deps = deps
  }

  /** The key with this text, if it was added less than ten seconds ago. */
  get(text: string): PresentedKey | undefined {
    const entry = this.#entries.get(text)
    return entry !== undefined && this.#isKept(entry) ? entry.key : undefined
  }

  /** Adds a key, and schedules its removal. */
  keep(text: string, key: PresentedKey): void {
    const at = this.#deps.now()
    this.#entries.delete(text)
    this.#entries.set(text, { key, at })
    this.#forget()
    if (Math.abs(at - this.#arrangedAt) < FORGET_EVERY_MS) return
    this.#arrangedAt = at
    const { pause, keepAlive } = this.#deps
    // One timer for all keys of a second. If the runtime loses it, adding the next key removes the expired ones.
    keepAlive(pause(KEPT_MS + FORGET_EVERY_MS).then(() => this.#forget()))
  }

  /** Removes expired keys, and the oldest ones beyond the maximum. */
  #forget(): void {
    for (const [text, entry] of this.#entries) {
      if (this.#entries.size <= MAX_TEXTS && this.#isKept(entry)) return
      this.#entries.delete(text)
    }
  }

  #isKept({ at }: Entry): boolean {
    const age = this.#deps.now() - at
    return age >= 0 && age < KEPT_MS
  }
}
