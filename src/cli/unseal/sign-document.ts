import { canonicalJson } from '../../protocol/canonical-json.ts'
import { signCompactJws } from '../../protocol/compact-jws.ts'
import { utf8 } from '../../protocol/bytes.ts'
import { UNSEAL_SCHEMA, UNSEAL_TYP, type UnsealDocument } from '../../protocol/unseal.ts'
import type { SigningKey } from '../../enclave/release/signing-key.ts'

/** Long enough for delivery and for small clock differences. */
const VALIDITY_SECONDS = 300

/** The content of a document except its times. */
export type UnsealTerms = Omit<UnsealDocument, 'schema' | 'issued_at' | 'expires_at'>

/**
 * Signs an unseal document that is valid from now on for `VALIDITY_SECONDS`.
 * @param now milliseconds since the epoch
 */
export function signUnsealDocument(
  { ledger_position: position, ...terms }: UnsealTerms,
  operator: SigningKey,
  now: number,
): Promise<string> {
  const issuedAt = Math.floor(now / 1000)
  const document = {
    schema: UNSEAL_SCHEMA,
    issued_at: issuedAt,
    expires_at: issuedAt + VALIDITY_SECONDS,
    ...terms,
    ...(position === undefined ? {} : { ledger_position: position }),
  }
  const { kid, privateKey } = operator
  return signCompactJws(utf8(canonicalJson(document)), { kid, typ: UNSEAL_TYP, privateKey })
}
