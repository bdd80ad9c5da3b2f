import type { Bytes } from '../../protocol/bytes.ts'
import { LinkError } from '../link-error.ts'
import type { HpkeKey } from './hpke-key.ts'

/**
 * Maximum number of encapsulated keys remembered for one HPKE key. Each takes 75 bytes, so the current key and one
 * former key take 40 MB at most, and the maximum number of keys takes 160 MB.
 */
const MAX_USES = 262_144

/**
 * The fraction of `maxUses`, or of one owner's share of it, after which a key should be replaced, so that the next key
 * is in use before anybody is refused.
 */
const WORN_AT = 3 / 4

/** How long a replaced key is still accepted, ms: as long as clients may rely on the envelope that names it. */
const GRACE_MS = 3_600_000

/** Maximum number of replaced keys accepted at a time. */
const MAX_FORMER = 7

export interface KeyringLimits {
  readonly maxUses: number
  readonly graceMs: number
  readonly maxFormer: number
}

/** An HPKE key, and every encapsulated key that was accepted while it was current. */
interface InUse {
  readonly key: HpkeKey
  readonly seen: Set<string>
  /** How many encapsulated keys each owner has used. */
  readonly used: Map<string, number>
  most: number
}

interface Former extends InUse {
  /** Unix ms. */
  readonly until: number
}

function newlyInUse(key: HpkeKey): InUse {
  return { key, seen: new Set(), used: new Map(), most: 0 }
}

/**
 * The HPKE keys in use: the current one, and each former one for an hour after it was replaced. An encapsulated key is
 * accepted once: accepted ones are remembered for as long as they could be replayed, because EHBP itself has no
 * protection against replay.
 *
 * One owner may use at most as many as are still free, so that no owner can use up the key for all others (the same
 * rule as in src/worker/limits/fair-share.ts). Nor can one owner end a former key early by forcing replacements: while
 * the maximum number of former keys is in use, an owner that has used its share waits. Only when the uses of all owners
 * together fill the current key is the oldest former key dropped for the next one.
 */
export class HpkeKeyring {
  readonly #now: () => number
  readonly #limits: KeyringLimits
  #current: InUse
  /** The newest first. */
  #former: readonly Former[] = []

  constructor(
    first: HpkeKey,
    now: () => number,
    limits: KeyringLimits = { maxUses: MAX_USES, graceMs: GRACE_MS, maxFormer: MAX_FORMER },
  ) {
    this.#current = newlyInUse(first)
    this.#now = now
    this.#limits = limits
  }

  get current(): HpkeKey {
    return this.#current.key
  }

  /** Whether the current key was used so often, by all owners or by one, that it should be replaced. */
  get worn(): boolean {
    const { seen, most } = this.#current
    const { maxUses, maxFormer } = this.#limits
    if (seen.size >= maxUses * WORN_AT) return true
    return most >= (maxUses - seen.size) * WORN_AT && this.#accepted().length < maxFormer
  }

  /** Puts the next key into use. Where the maximum number of former keys is in use, the oldest is dropped. */
  adopt(next: HpkeKey): void {
    const { graceMs, maxFormer } = this.#limits
    const replaced = { ...this.#current, until: this.#now() + graceMs }
    this.#former = [replaced, ...this.#accepted()].slice(0, maxFormer)
    this.#current = newlyInUse(next)
  }

  /**
   * The shared secret of an encapsulated key under each HPKE key in use, the newest first: a request does not say which
   * HPKE key it was made for.
   * @param owner the owner of the request; the encapsulated key is then never accepted again. Null where only an error
   *   is to be encrypted, so that a refused request can neither be replayed nor use up the memory
   * @throws LinkError `replayed`; `invalid_request` for a point of low order; `rate_limited` while the owner has used
   *   its share; `used_up` while the memory is full
   */
  async decapsulate(enc: Bytes, owner: string | null): Promise<readonly Bytes[]> {
    const keys = this.#inUse()
    // A flat string: one built by concatenation takes ten times the memory.
    if (owner !== null) this.#remember(Buffer.from(enc).toString('latin1'), owner, keys)
    try {
      return await Promise.all(keys.map(({ key }) => key.decapsulate(enc)))
    } catch (cause) {
      throw new LinkError('invalid_request', 'the encapsulated key is not usable', { cause })
    }
  }

  #inUse(): readonly InUse[] {
    this.#former = this.#accepted()
    return [this.#current, ...this.#former]
  }

  /** The former keys whose grace period has not ended. */
  #accepted(): readonly Former[] {
    const now = this.#now()
    return this.#former.filter(({ until }) => until > now)
  }

  #remember(enc: string, owner: string, keys: readonly InUse[]): void {
    if (keys.some(({ seen }) => seen.has(enc))) {
      throw new LinkError('replayed', 'this encapsulated key was used before')
    }
    const { seen, used } = this.#current
    const free = this.#limits.maxUses - seen.size
    if (free <= 0) {
      throw new LinkError('used_up', 'the key is used up and no next one is in force yet')
    }
    const own = used.get(owner) ?? 0
    if (own >= free) {
      throw new LinkError('rate_limited', 'the owner has its share and no next key is in force yet')
    }
    seen.add(enc)
    used.set(owner, own + 1)
    this.#current.most = Math.max(this.#current.most, own + 1)
  }
}
