import { sha256Hex } from '../../protocol/digest.ts'
import { LinkUnavailable, type Link } from '../link/link.ts'
import type { Storage } from '../storage/database.ts'
import { findEnvelopeOf, rememberSigningKey } from '../storage/signing-keys.ts'

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
  /** The latest pair that is known to be stored. */
  #stored: { readonly kid: string; readonly envelopeSha256: string } | undefined

  constructor(link: KeySource, storage: Storage, now: () => number) {
    this.#link = link
    this.#storage = storage
    this.#now = now
  }

  /**
   * Stores the key and its current envelope unless they are stored already. If no envelope can be captured, or the daemon signs
   * with another key by now, an earlier one of the same key is enough, because it still proves the binding.
   * @throws LinkUnavailable when the daemon does not answer, or there is no envelope of this key
   */
  async remember(kid: string): Promise<void> {
    const known = await this.#link.state()
    const state = known.kid === kid ? known : await this.#link.freshState()
    if (state.kid !== kid || state.envelope_sha256 === null) return this.#requireStored(kid)
    if (this.#stored?.kid === kid && this.#stored.envelopeSha256 === state.envelope_sha256) return
    const answer = await this.#link.attestation()
    if (!answer.ok) return this.#requireStored(kid)
    const envelopeSha256 = await sha256Hex(answer.envelope)
    await rememberSigningKey(
      this.#storage.directory(),
      { kid, jwkJson: JSON.stringify(state.jwk), envelopeSha256, envelopeJson: answer.envelope },
      this.#now(),
    )
    this.#stored = { kid, envelopeSha256 }
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

  async #requireStored(kid: string): Promise<void> {
    if (this.#stored?.kid === kid) return
    const envelopeSha256 = await findEnvelopeOf(this.#storage.directory(), kid)
    if (envelopeSha256 === undefined) throw new LinkUnavailable('the signing key has no envelope')
    this.#stored = { kid, envelopeSha256 }
  }
}
