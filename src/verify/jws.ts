import { type CompactJws, verifyJwsSignature } from '../protocol/compact-jws.ts'
import { jwkThumbprint, type EcPoint } from '../protocol/jwk.ts'
import { firstFault, judge, type Check } from './check.ts'

type SignedDocument = 'trust_bundle' | 'manifest' | 'receipt'

/** Header members with which a sender could choose the key or the rules; valid documents have none of these. */
const FORBIDDEN_MEMBERS = ['jwk', 'jku', 'x5c', 'x5u', 'x5t', 'crit', 'b64', 'zip'] as const

export interface JwsExpectation {
  readonly document: SignedDocument
  /** Accepted values of `typ`; if undefined is among them, `typ` may be absent. */
  readonly typ: readonly (string | undefined)[]
  /** The only key that may have signed. */
  readonly key: EcPoint
}

/**
 * Checks header and signature of an ES256 JWS with the one key that the caller chose. The `kid` must be that key's
 * thumbprint, so that a key of another role is never tried.
 */
export async function checkJws(
  jws: CompactJws,
  { document, typ, key }: JwsExpectation,
): Promise<Check[]> {
  const kid = await jwkThumbprint(key)
  const header = headerFault(jws, typ) ?? (jws.header.kid === kid ? undefined : kidFault(jws, kid))
  const checks = [judge(`${document}_header`, header, `ES256, key ${kid}`)]
  if (jws.header.alg !== 'ES256') return checks
  const signed = await verifyJwsSignature(jws, key, 'ES256')
  const signature = signed ? undefined : 'the signature does not verify'
  return [...checks, judge(`${document}_signature`, signature, `key ${kid}`)]
}

/** What is wrong with the header, independent of the key. */
export function headerFault(
  { header }: CompactJws,
  typ: readonly (string | undefined)[],
): string | undefined {
  const forbidden = FORBIDDEN_MEMBERS.find((member) => header[member] !== undefined)
  return firstFault(
    header.alg !== 'ES256' && `alg is ${header.alg ?? 'missing'} instead of ES256`,
    forbidden && `the header brings ${forbidden}`,
    !typ.includes(header.typ) && `typ is ${header.typ ?? 'missing'} instead of ${typ[0]}`,
    header.kid === undefined && 'kid is missing',
  )
}

function kidFault({ header }: CompactJws, kid: string): string {
  return `kid is ${header.kid} instead of ${kid}`
}
