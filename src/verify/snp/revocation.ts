import { equalBytes, type Bytes } from '../../protocol/bytes.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { firstFault, judge, type Check } from '../check.ts'
import type { Certificate } from '../x509/certificate.ts'
import { pssFault } from '../x509/pss-signature.ts'
import { readRevocationList, type RevocationList } from '../x509/revocation-list.ts'

/** The two authorities above a chip key. */
export interface Authorities {
  readonly ark: Certificate
  readonly ask: Certificate
}

export interface RevocationResult {
  readonly check: Check
  /** When the list expires, in milliseconds since 1970; present only where the root signed the list. */
  readonly until?: number
}

/**
 * Checks the authorities of a chip key against AMD's revocation list (AMD 57230, "CRL"; RFC 5280 section 5): signed
 * by the root of the chain, valid at `now` (milliseconds since 1970), and containing neither authority. A list that
 * is missing or cannot be parsed fails like one that contains them: callers that can do without a list do not call
 * this.
 */
export async function checkRevocation(
  authorities: Authorities,
  crl: Bytes | undefined,
  now: number,
): Promise<RevocationResult> {
  if (crl === undefined) return failed("AMD's revocation list is missing")
  try {
    return await checkList(authorities, crl, now)
  } catch (error) {
    if (!(error instanceof MalformedEvidence)) throw error
    return failed(`the revocation list cannot be read: ${error.reason}`)
  }
}

function failed(fault: string): RevocationResult {
  return { check: judge('revocation', fault, '') }
}

async function checkList(
  { ark, ask }: Authorities,
  crl: Bytes,
  now: number,
): Promise<RevocationResult> {
  const list = await readListOf({ ark }, crl)
  if (typeof list === 'string') return failed(list)
  const { thisUpdate, nextUpdate, serials } = list
  const fault = firstFault(
    (now < thisUpdate || now > nextUpdate) && 'the revocation list is out of date',
    serials.some((serial) => equalBytes(serial, ask.serial)) && 'the ASK is revoked',
    serials.some((serial) => equalBytes(serial, ark.serial)) && 'the ARK is revoked',
  )
  const until = new Date(nextUpdate).toISOString()
  const detail = `${serials.length} revoked, not these; list until ${until}`
  return { check: judge('revocation', fault, detail), until: nextUpdate }
}

/**
 * Reads a revocation list in DER that this root signed, or says what is wrong with it. Whether it is valid at a given
 * time is for the caller to check.
 * @throws MalformedEvidence when it is not a revocation list
 */
export async function readListOf(
  { ark }: Pick<Authorities, 'ark'>,
  crl: Bytes,
): Promise<RevocationList | string> {
  const list = readRevocationList(crl)
  if (!equalBytes(list.issuer, ark.subject)) return "the revocation list is not the root's"
  const fault = await pssFault(list, ark.spki)
  return fault === undefined ? list : `revocation list: ${fault}`
}
