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
 * Fetches evidence from the daemon and stores it with the receipts that name it. It never rejects: the receipt is
 * already stored and valid without it, and the next receipt that names the same evidence fetches it again.
 * @returns how many pieces are still missing
 */
export async function retainEvidence(
  tools: { readonly link: Pick<Link, 'evidence'>; readonly ledger: Database },
  { customerId, refs, expiresAtMs }: WantedEvidence,
): Promise<number> {
  const kept = await Promise.allSettled(
    refs.map(async (ref) => {
      const dataB64 = await fetchEvidence(tools.link, ref)
      await storeEvidence(tools.ledger, { customerId, sha256: ref, dataB64, expiresAtMs })
    }),
  )
  return kept.filter(({ status }) => status === 'rejected').length
}

/** Base64 of the bytes that have this digest. */
async function fetchEvidence(link: Pick<Link, 'evidence'>, ref: string): Promise<string> {
  const bytes = await link.evidence(ref)
  if (bytes === undefined || toHex(await sha256(bytes)) !== ref) throw new Error('no such evidence')
  return toBase64(bytes)
}
