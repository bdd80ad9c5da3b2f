import type { Bytes } from '../../protocol/bytes.ts'
import { LinkError } from '../link-error.ts'
import type { HpkeKey } from './hpke-key.ts'

/**
 * Maximum number of encapsulated keys remembered for one key. Each takes 75 bytes, so the two keys in use take 40 MB
 * at most.
 */
const MAX_USES = 262_144

/**
 * The fraction of them after which a key should be replaced, so that the next one is in use before this one is full.
 */
const WORN_AT = 3 / 4

/** How long a replaced key is still accepted: as long as clients may rely on the envelope that names it. */
const GRACE_MS = 3_600_000

export interface KeyringLimits {
  readonly maxUses: number
  readonly graceMs: number
}

/** A key, and every encapsulated key that was accepted while it was current. */
interface InUse {
  readonly key: HpkeKey
  readonly seen: Set<string>
}

/**
 * The HPKE keys in use: the current one, and for an hour the previous one. An encapsulated key is accepted once:
 * accepted ones are remembered for as long as they could be replayed. EHBP itself has no protection against replay.
 */
export class HpkeKeyring {
  readonly #now: () => number
  readonly #limits: KeyringLimits
  #current: InUse
  #former: (InUse & { readonly until: number }) | undefined

  constructor(
    first: HpkeKey,
    now: () => number,
    limits: KeyringLimits = { maxUses: MAX_USES, graceMs: GRACE_MS },
  ) {
    this.#current = { key: first, seen: new Set() }
    this.#now = now
    this.#limits = limits
  }

  get current(): HpkeKey {
    return this.#current.key
  }

  /** Whether the current key was used so often that it should be replaced. */
  get worn(): boolean {
    return this.#current.seen.size >= this.#limits.maxUses * WORN_AT
  }

  /** Puts the next key into use. The one before the current one is dropped. */
  adopt(next: HpkeKey): void {
    this.#former = { ...this.#current, until: this.#now() + this.#limits.graceMs }
    this.#current = { key: next, seen: new Set() }
  }

  /**
   * The shared secret of an encapsulated key under each key in use, the newest first: a request does not say which
   * key it was made for.
   * @param once true for a request, whose encapsulated key is then never accepted again; false where only an error is
   *   to be encrypted, so that a refused request can neither be replayed nor use up the memory
   * @throws LinkError `replayed`; `invalid_request` for a point of low order; `rate_limited` while the memory is full
   */
  async decapsulate(enc: Bytes, { once }: { readonly once: boolean }): Promise<readonly Bytes[]> {
    const keys = this.#inUse()
    // As one flat string: a string built by concatenation takes ten times the memory.
    if (once) this.#remember(Buffer.from(enc).toString('latin1'), keys)
    try {
      return await Promise.all(keys.map(({ key }) => key.decapsulate(enc)))
    } catch (cause) {
      throw new LinkError('invalid_request', 'the encapsulated key is not usable', { cause })
    }
  }

  #inUse(): readonly InUse[] {
    if (this.#former !== undefined && this.#former.until <= this.#now()) this.#former = undefined
    return this.#former === undefined ? [this.#current] : [this.#current, this.#former]
  }

  #remember(enc: string, keys: readonly InUse[]): void {
    if (keys.some(({ seen }) => seen.has(enc))) {
      throw new LinkError('replayed', 'this encapsulated key was used before')
    }
    const { seen } = this.#current
    if (seen.size >= this.#limits.maxUses) {
      throw new LinkError('rate_limited', 'the key is used up and no next one is in force yet')
    }
    seen.add(enc)
  }
}
