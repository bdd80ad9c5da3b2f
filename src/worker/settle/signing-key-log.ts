import { sha256Hex } from '../../protocol/digest.ts'
import { LinkUnavailable, type Link } from '../link/link.ts'
import { StorageUnavailable, type Storage } from '../storage/database.ts'
import { findEnvelopeOf, hasSigningKey, rememberSigningKey } from '../storage/signing-keys.ts'

/**
 * How long a stored key is assumed to be still stored, ms; after that it is checked again. So a database that was restored,
 * or failed over, without the key while the router was running soon has it again.
 */
const SURE_FOR_MS = 60_000

/** A stored key with its envelope, and when it was last confirmed to be stored, ms. */
interface StoredKey {
  readonly kid: string
  readonly envelopeSha256: string
  readonly confirmedAt: number
}

/** The daemon calls that this class uses. */
type KeySource = Pick<Link, 'state' | 'freshState' | 'attestation'>

/**
 * Keeps every signing key's public half together with the envelope that bound it, so that a receipt can
 * still be verified after its instance is gone. No receipt is sent before its key is stored.
 */
export class SigningKeyLog {
  readonly #link: KeySource
  readonly #storage: Storage
  readonly #now: () => number
  /** The latest key and envelope that are known to be stored. */
  #stored: StoredKey | undefined

  constructor(link: KeySource, storage: Storage, now: () => number) {
    this.#link = link
    this.#storage = storage
    this.#now = now
  }

  /**
   * Stores the key with its current envelope unless they are stored already. If no envelope can be captured, or the daemon
   * meanwhile signs with another key, an earlier envelope of the same key is enough, because it still proves the binding.
   * @throws LinkUnavailable when the daemon does not answer, or there is no envelope of this key
   * @throws StorageUnavailable when the storage does not answer
   */
  async remember(kid: string): Promise<void> {
    const known = await this.#link.state()
    const state = known.kid === kid ? known : await this.#link.freshState()
    if (state.kid !== kid || state.envelope_sha256 === null) return this.#requireStored(kid)
    if (await this.#isStored(kid, state.envelope_sha256)) return
    const answer = await this.#link.attestation()
    if (!answer.ok) return this.#requireStored(kid)
    const envelopeSha256 = await sha256Hex(answer.envelope)
    const confirmedAt = this.#now()
    await rememberSigningKey(
      this.#storage.directory(),
      { kid, jwkJson: JSON.stringify(state.jwk), envelopeSha256, envelopeJson: answer.envelope },
      confirmedAt,
    )
    this.#stored = { kid, envelopeSha256, confirmedAt }
  }

  /**
   * Stores the live key with its envelope, so that every instance on this storage publishes it.
   * @throws LinkUnavailable when the daemon does not answer or has no envelope
   * @throws StorageUnavailable when the storage does not answer
   */
  async rememberLive(): Promise<void> {
    const { kid } = await this.#link.state()
    await this.remember(kid)
  }

  /**
   * Whether key and envelope are known to be stored. Stays true while the storage does not answer: storing the receipt then
   * fails, too.
   */
  async #isStored(kid: string, envelopeSha256: string): Promise<boolean> {
    const stored = this.#stored
    if (stored?.kid !== kid || stored.envelopeSha256 !== envelopeSha256) return false
    const confirmedAt = this.#now()
    if (Math.abs(confirmedAt - stored.confirmedAt) < SURE_FOR_MS) return true
    try {
      if (!(await hasSigningKey(this.#storage.directory(), stored))) return false
      this.#stored = { ...stored, confirmedAt }
      return true
    } catch (error) {
      if (error instanceof StorageUnavailable) return true
      throw error
    }
  }

  async #requireStored(kid: string): Promise<void> {
    if (this.#stored?.kid === kid) return
    const envelopeSha256 = await findEnvelopeOf(this.#storage.directory(), kid)
    if (envelopeSha256 === undefined) throw new LinkUnavailable('the signing key has no envelope')
    this.#stored = { kid, envelopeSha256, confirmedAt: this.#now() }
  }
}
