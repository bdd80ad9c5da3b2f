import { toBase64, toHex } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import type { Link } from '../link/link.ts'
import type { Database } from '../storage/database.ts'
import { storeEvidence } from './ledger.ts'

/** Evidence that a stored receipt names by digest and that its customer's storage does not hold yet. */
export interface WantedEvidence {
  readonly customerId: string
  readonly refs: readonly string[]
  /** When the receipt expires, ms. */
  readonly expiresAtMs: number
}

/**
 * Fetches evidence from the daemon and stores it for the receipts that name it. Never rejects: the receipt is already stored
 * and valid without it, and the next receipt that names the same evidence fetches it again.
 * @returns how many pieces are still missing
 */
export async function retainEvidence(
  tools: { readonly evidence: Pick<Evidence, 'base64Of'>; readonly ledger: Database },
  { customerId, refs, expiresAtMs }: WantedEvidence,
): Promise<number> {
  const kept = await Promise.allSettled(
    refs.map(async (ref) => {
      const dataB64 = await tools.evidence.base64Of(ref)
      await storeEvidence(tools.ledger, { customerId, sha256: ref, dataB64, expiresAtMs })
    }),
  )
  return kept.filter(({ status }) => status === 'rejected').length
}

/** Limit of the evidence in memory, characters: a few dozen pieces of usual size. */
const MAX_CHARACTERS = 4 * 1024 * 1024

/**
 * A cache of the daemon's evidence. Each new piece is stored once for every customer, with the customer's first receipt that
 * names it, so the least recently used pieces are dropped first.
 */
export class Evidence {
  readonly #link: Pick<Link, 'evidence'>
  /** Base64 by digest, in the order of their last use. */
  readonly #texts = new Map<string, string>()
  #characters = 0

  constructor(link: Pick<Link, 'evidence'>) {
    this.#link = link
  }

  /**
   * Base64 of the bytes with this digest.
   * @throws LinkUnavailable when the daemon does not answer
   * @throws Error when the daemon has no such evidence
   */
  async base64Of(ref: string): Promise<string> {
    const text = this.#texts.get(ref) ?? (await fetchEvidence(this.#link, ref))
    this.#keep(ref, text)
    return text
  }

  #keep(ref: string, text: string): void {
    this.#forget(ref)
    if (text.length > MAX_CHARACTERS) return
    this.#texts.set(ref, text)
    this.#characters += text.length
    for (const earliest of this.#texts.keys()) {
      if (this.#characters <= MAX_CHARACTERS) return
      this.#forget(earliest)
    }
  }

  #forget(ref: string): void {
    this.#characters -= this.#texts.get(ref)?.length ?? 0
    this.#texts.delete(ref)
  }
}

async function fetchEvidence(link: Pick<Link, 'evidence'>, ref: string): Promise<string> {
  const bytes = await link.evidence(ref)
  if (bytes === undefined || toHex(await sha256(bytes)) !== ref) throw new Error('no such evidence')
  return toBase64(bytes)
}
