import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'
import { readCertificate } from '../x509/certificate.ts'
import { expectTag, readChildren, readDer, readObjectId, TAG } from '../x509/der.ts'

/** The extension with Intel's statements on a chip, and the id of the provisioning enclave in it. */
const SGX_EXTENSION = '1.2.840.113741.1.13.1'
const PCE_ID = `${SGX_EXTENSION}.3`

/**
 * Requires that TCB info is about the provisioning enclave (PCE) that certified the quoting enclave, like Intel's Quote
 * Verification Library: PCESVN counts versions of one such enclave, so the levels of another one say nothing about it.
 * `@phala/dcap-qvl` (0.3.9) compares only family and model.
 * @param stated `pceId` of the TCB info, hex
 * @throws EvidenceRefused `hardware` (`pce_id`) when the chip certificate names another id, none or several
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
