import { ApiError } from '../http/errors.ts'
import { sourceOf } from '../http/source.ts'
import { SourceBudget, type BudgetLimits } from '../http/source-budget.ts'
import type { Storage } from '../storage/database.ts'
import { authenticate, invalidKey, readApiKey, readApiKeyText } from './authenticate.ts'
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
 * How many keys that do not exist one source may name under one customer id in a second, each for a read of the customer's
 * storage. Beyond it, keys that this process has not seen before are refused for the rest of the second.
 */
const MISSES: BudgetLimits = { perSource: 20, total: Number.POSITIVE_INFINITY, windowMs: 1_000 }

/**
 * Admits only requests whose key exists, before a byte of their body is read or memory is reserved for them. Results
 * are cached for a short time, so that a known key costs no storage call.
 */
export class KeyGate {
  readonly #now: () => number
  readonly #found = new Map<string, number>()
  readonly #missing = new Map<string, number>()
  /** The keys that were found just now, by their whole text: reading one again needs no digest. */
  readonly #read = new Map<string, PresentedKey>()
  readonly #misses: SourceBudget

  constructor(now: () => number) {
    this.#now = now
    this.#misses = new SourceBudget(MISSES, now)
  }

  /**
   * @throws ApiError `unauthorized` or `key_expired`; `rate_limit_exceeded` for an unknown key of a source that has named
   *   too many keys that do not exist
   * @throws StorageUnavailable when the storage does not answer
   */
  async admit(
    request: Request,
    context: { readonly keyring: Keyring; readonly storage: Storage },
  ): Promise<PresentedKey> {
    const text = readApiKeyText(request)
    const key = this.#read.get(text) ?? (await readApiKey(request, context))
    const wasFound = this.#found.has(key.keyHash)
    if (this.#isFresh(this.#found, key, CACHED_MS)) return key
    if (this.#isFresh(this.#missing, key, MISSING_MS)) throw invalidKey()
    const guesser = `${sourceOf(request)} ${key.customerId}`
    if (!wasFound && !this.#misses.has(guesser)) throw tooManyGuesses()
    try {
      await authenticate(request, { ...context, presentedKey: key, now: this.#now })
      this.#remember(this.#found, key)
      this.#keepText(text, key)
    } catch (error) {
      const isMissing = error instanceof ApiError && error.code === 'unauthorized'
      if (isMissing) {
        this.#found.delete(key.keyHash)
        this.#remember(this.#missing, key)
        this.#misses.spend(guesser)
      }
      throw error
    }
    return key
  }

  #isFresh(entries: Map<string, number>, { keyHash }: PresentedKey, forMs: number): boolean {
    const at = entries.get(keyHash)
    if (at === undefined) return false
    const age = this.#now() - at
    return age >= 0 && age < forMs
  }

  /** Keeps a secret in clear text. Those that are no longer fresh are dropped here, so with the next key that is looked up. */
  #keepText(text: string, key: PresentedKey): void {
    this.#read.delete(text)
    this.#read.set(text, key)
    for (const [former, read] of this.#read) {
      const isFull = this.#read.size > MAX_REMEMBERED_KEYS
      if (!isFull && this.#isFresh(this.#found, read, CACHED_MS)) return
      this.#read.delete(former)
    }
  }

  /** Adds an entry; the oldest is evicted first. */
  #remember(entries: Map<string, number>, { keyHash }: PresentedKey): void {
    entries.delete(keyHash)
    entries.set(keyHash, this.#now())
    const [oldest] = entries.keys()
    if (entries.size > MAX_REMEMBERED_KEYS && oldest !== undefined) entries.delete(oldest)
  }
}

function tooManyGuesses(): ApiError {
  const message =
    'Too many API keys that do not exist came from this address. Try again in a second.'
  return new ApiError('rate_limit_exceeded', message, { retryAfter: 1 })
}
