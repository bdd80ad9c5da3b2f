import { ApiError } from '../http/errors.ts'
import type { Storage } from '../storage/database.ts'
import { authenticate, invalidKey, readApiKey } from './authenticate.ts'
import type { PresentedKey } from './api-key.ts'
import type { Keyring } from './keyring.ts'

/**
 * How long a key that was found is accepted without asking the storage, ms. Whether it is still valid is checked by
 * the operation that follows.
 */
const CACHED_MS = 10_000
/**
 * How long a key that was not found is refused without asking the storage, ms. Its secret is random, so it can never
 * come into existence later.
 */
const MISSING_MS = 300_000
const MAX_REMEMBERED_KEYS = 10_000

/**
 * Admits only requests whose key exists, before a byte of their body is read or memory is reserved for them. Results
 * are cached for a short time, so that a known key costs no storage call.
 */
export class KeyGate {
  readonly #now: () => number
  readonly #found = new Map<string, number>()
  readonly #missing = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * @throws ApiError `unauthorized` or `key_expired`
   * @throws StorageUnavailable when the storage does not answer
   */
  async admit(
    request: Request,
    context: { readonly keyring: Keyring; readonly storage: Storage },
  ): Promise<PresentedKey> {
    const key = await readApiKey(request, context)
    if (this.#isFresh(this.#found, key, CACHED_MS)) return key
    if (this.#isFresh(this.#missing, key, MISSING_MS)) throw invalidKey()
    try {
      await authenticate(request, { ...context, presentedKey: key, now: this.#now })
      this.#remember(this.#found, key)
    } catch (error) {
      const isMissing = error instanceof ApiError && error.code === 'unauthorized'
      if (isMissing) this.#remember(this.#missing, key)
      throw error
    }
    return key
  }

  #isFresh(entries: Map<string, number>, { keyHash }: PresentedKey, forMs: number): boolean {
    const at = entries.get(keyHash)
    if (at === undefined) return false
    const age = this.#now() - at
    if (age >= 0 && age < forMs) return true
    entries.delete(keyHash)
    return false
  }

  /** Adds an entry; the oldest is evicted first. */
  #remember(entries: Map<string, number>, { keyHash }: PresentedKey): void {
    entries.set(keyHash, this.#now())
    const [oldest] = entries.keys()
    if (entries.size > MAX_REMEMBERED_KEYS && oldest !== undefined) entries.delete(oldest)
  }
}
