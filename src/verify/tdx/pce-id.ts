import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { readCertificate } from '../x509/certificate.ts'
import { expectTag, readChildren, readDer, readObjectId, TAG } from '../x509/der.ts'

/** Intel's statements on a chip in its certificate, and the provisioning enclave's id among them. */
const SGX_EXTENSION = '1.2.840.113741.1.13.1'
const PCE_ID = `${SGX_EXTENSION}.3`

/**
 * Requires that TCB info is about the provisioning enclave that certified the quoting enclave, as Intel's Quote
 * Verification Library does: PCESVN counts versions of one such enclave, so that another one's levels say nothing of it.
 * `@phala/dcap-qvl` (0.3.9) compares family and model alone.
 * @param stated `pceId` of the TCB info, hex
 * @throws EvidenceRefused `hardware` (`pce_id`) when the chip certificate names another one, none or several
 */
export function requirePceId(chipDer: Bytes, stated: string): void {
  let certified: string
  try {
    certified = readPceId(chipDer)
  } catch (cause) {
    throw new EvidenceRefused('hardware', ['pce_id'], { cause })
  }
  if (certified !== stated.toLowerCase()) throw new EvidenceRefused('hardware', ['pce_id'])
}

function readPceId(chipDer: Bytes): string {
  const ids = readCertificate(chipDer)
    .extensions.filter(({ id }) => id === SGX_EXTENSION)
    .flatMap(({ value }) => readChildren(readDer(value, TAG.sequence)))
    .map((statement) => readChildren(expectTag(statement, TAG.sequence)))
    .filter(([id]) => readObjectId(id) === PCE_ID)
    .map(([, value]) => toHex(expectTag(value, TAG.octetString).body))
  const [only, ...more] = ids
  if (only === undefined || more.length > 0) throw new Error('not one id of a provisioning enclave')
  return only
}
