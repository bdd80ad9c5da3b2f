import { ApiError, ERROR_TYPES } from '../http/errors.ts'
import { sourceOf } from '../http/source.ts'
import { SourceBudget, type BudgetLimits } from '../http/source-budget.ts'
import type { Storage } from '../storage/database.ts'
import {
  authenticate,
  invalidKey,
  readApiKey,
  readApiKeyText,
  readAsCaller,
} from './authenticate.ts'
import type { PresentedKey } from './api-key.ts'
import { KeyTextCache, type KeyTextCacheDeps } from './key-text-cache.ts'
import type { Keyring } from './keyring.ts'

/**
 * How long the gate accepts a key that was found, and refuses one that was not, without a storage call, ms. The operation
 * that follows checks whether a key is still valid; if it refuses the key, the acceptance ends. A key that was not found
 * cannot come into existence later, because its secret is random.
 */
const REMEMBERED_MS = 300_000

/** For a request that is itself invalid: how long a key that was found counts as valid without a check, ms. */
const CERTAIN_MS = 1_000

/**
 * Maximum numbers of remembered keys, enough for every customer of a busy service: a key that is not remembered costs a
 * storage call.
 */
const MAX_FOUND_KEYS = 50_000
const MAX_MISSING_KEYS = 10_000

/**
 * How many non-existing keys one source may name for one customer id per second; each costs a read of the customer's
 * storage. Beyond it, keys that this process has not seen before are refused for the rest of the second.
 */
const MISSES: BudgetLimits = { perSource: 20, total: Number.POSITIVE_INFINITY, windowMs: 1_000 }

/**
 * Admits only requests whose key exists, before a byte of their body is read or memory is reserved for them. Results
 * are remembered, so that a known key costs no storage call.
 */
export class KeyGate {
  readonly #now: () => number
  /** When each key was found or not found, by the digest of its text. */
  readonly #found = new Map<string, number>()
  readonly #missing = new Map<string, number>()
  /** Caches keys by their text, which saves hashing a key that is presented again. */
  readonly #texts: KeyTextCache
  readonly #misses: SourceBudget

  constructor(deps: KeyTextCacheDeps) {
    this.#now = deps.now
    this.#texts = new KeyTextCache(deps)
    this.#misses = new SourceBudget(MISSES, deps.now)
  }

  /**
   * Lets a request in if its key exists.
   * @throws ApiError `unauthorized` or `key_expired`; `rate_limit_exceeded` for an unknown key from a source that has named
   *   too many non-existing keys
   * @throws StorageUnavailable when the storage does not answer
   */
  async admit(
    request: Request,
    context: { readonly keyring: Keyring; readonly storage: Storage },
  ): Promise<PresentedKey> {
    const text = readApiKeyText(request)
    const kept = this.#texts.get(text)
    const key = kept ?? (await readApiKey(request, context))
    const foundAt = this.#found.get(key.keyHash)
    if (this.#isWithin(REMEMBERED_MS, foundAt)) {
      if (kept === undefined) this.#texts.keep(text, key)
      return key
    }
    if (this.#isWithin(REMEMBERED_MS, this.#missing.get(key.keyHash))) throw invalidKey()
    const guesser = `${sourceOf(request)} ${key.customerId}`
    if (foundAt === undefined && !this.#misses.has(guesser)) throw tooManyGuesses()
    try {
      await authenticate(request, { ...context, presentedKey: key, now: this.#now })
      remember(this.#found, key.keyHash, this.#now(), MAX_FOUND_KEYS)
      this.#texts.keep(text, key)
    } catch (error) {
      const isMissing = error instanceof ApiError && error.code === 'unauthorized'
      if (isMissing) {
        this.#noteMissing(key)
        this.#misses.spend(guesser)
      }
      throw error
    }
    return key
  }

  /**
   * Decides how to answer a request that failed after its key was let in: with `error`, or with the key's error where the
   * key is no longer valid. Operations check the key themselves; if one refuses the key, the key's next request is checked
   * again. A request that was itself invalid may have failed before any operation, so its key is checked now.
   */
  async judge(
    key: PresentedKey,
    error: unknown,
    { storage }: { readonly storage: Storage },
  ): Promise<unknown> {
    if (!(error instanceof ApiError)) return error
    if (refusesKey(error)) {
      this.#askNextTime(key)
      return error
    }
    const isFresh = this.#isWithin(CERTAIN_MS, this.#found.get(key.keyHash))
    if (isFresh || ERROR_TYPES[error.status] !== 'invalid_request_error') return error
    // Remembered before the storage answers: of many invalid requests at once, only the first makes the call, however long
    // it takes.
    remember(this.#found, key.keyHash, this.#now(), MAX_FOUND_KEYS)
    try {
      await readAsCaller(key, { storage, now: this.#now }, [])
      return error
    } catch (refusal) {
      if (!(refusal instanceof ApiError)) return error
      if (refusal.code === 'unauthorized') this.#noteMissing(key)
      else this.#askNextTime(key)
      return refusal
    }
  }

  /**
   * Makes the key's next request check the storage. The key stays known as an existing one, so that its holder does not
   * count as guessing.
   */
  #askNextTime({ keyHash }: PresentedKey): void {
    if (this.#found.has(keyHash)) this.#found.set(keyHash, Number.NEGATIVE_INFINITY)
  }

  #noteMissing({ keyHash }: PresentedKey): void {
    this.#found.delete(keyHash)
    remember(this.#missing, keyHash, this.#now(), MAX_MISSING_KEYS)
  }

  #isWithin(ms: number, at: number | undefined): boolean {
    if (at === undefined) return false
    const age = this.#now() - at
    return age >= 0 && age < ms
  }
}

function refusesKey({ code }: ApiError): boolean {
  return code === 'unauthorized' || code === 'key_expired'
}

/** Adds an entry, and drops the oldest beyond the maximum. */
function remember(
  entries: Map<string, number>,
  keyHash: string,
  now: number,
  atMost: number,
): void {
  entries.delete(keyHash)
  entries.set(keyHash, now)
  const [oldest] = entries.keys()
  if (entries.size > atMost && oldest !== undefined) entries.delete(oldest)
}

function tooManyGuesses(): ApiError {
  const message =
    'Too many API keys that do not exist came from this address. Try again in a second.'
  return new ApiError('rate_limit_exceeded', message, { retryAfter: 1 })
}
