import { Quote, type Collateral, type VerifiedReport } from '@phala/dcap-qvl'
import { z } from 'zod'
import type { Bytes } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { EvidenceRefused } from './evidence-refused.ts'

/** ISVSVN in the report of the quoting enclave (SGX REPORT body), two bytes, little-endian. */
const ISV_SVN_OFFSET = 258

/** Byte 3 of TD_ATTRIBUTES: SEPT_VE_DISABLE must be set; protection keys and key locker may be. */
const SEPT_VE_DISABLE = 0x10
const SECURITY_BITS = 0xd0

/** Byte 7 of TD_ATTRIBUTES: performance counters may be on. */
const PERFMON = 0x80

/**
 * A platform below every level that Intel lists is out of date. `@phala/dcap-qvl` (0.3.9) stops there, with all
 * signatures verified; what it would look at afterwards is looked at here: the quoting enclave's own level, and the
 * attributes of the guest. Throws `EvidenceRefused`.
 */
export function judgeBelowEveryLevel(
  bytes: Bytes,
  { qe_identity: identity }: Collateral,
): Pick<VerifiedReport, 'status' | 'advisory_ids' | 'report'> {
  const { authData, report } = Quote.parse(bytes)
  const attributes = report.asTd10()?.tdAttributes ?? new Uint8Array(8)
  const serviceTd = report.asTd15()?.mrServiceTd ?? new Uint8Array(48)
  if (isDebug(attributes)) throw new EvidenceRefused('debug')
  if (!areAttributesPlain(attributes) || serviceTd.some((byte) => byte !== 0)) {
    throw new EvidenceRefused('hardware', ['td_attributes'])
  }
  if (isQuotingEnclaveRevoked(identity, authData.intoV3().qeReport)) {
    throw new EvidenceRefused('hardware', ['quoting_enclave'])
  }
  return { status: 'OutOfDate', advisory_ids: [], report }
}

/** TUD, the lowest byte of TD_ATTRIBUTES: any bit of it opens the guest to its host. */
export function isDebug([untrusted]: Uint8Array): boolean {
  return untrusted !== 0
}

function areAttributesPlain(attributes: Uint8Array): boolean {
  const security = attributes[3] ?? 0
  const performance = attributes[7] ?? 0
  const reserved = [1, 2, 4, 5, 6].some((index) => attributes[index] !== 0)
  return (
    !reserved &&
    (security & SEPT_VE_DISABLE) !== 0 &&
    (security & ~SECURITY_BITS) === 0 &&
    (performance & ~PERFMON) === 0
  )
}

const identitySchema = z.looseObject({
  tcbLevels: z.array(
    z.looseObject({ tcb: z.looseObject({ isvsvn: z.int() }), tcbStatus: z.string() }),
  ),
})

function isQuotingEnclaveRevoked(identity: string, qeReport: Uint8Array): boolean {
  const document = 'quoting enclave identity'
  const { tcbLevels } = readDocument(identitySchema, parseStrictJson(identity, document), document)
  const svn = (qeReport[ISV_SVN_OFFSET] ?? 0) + 256 * (qeReport[ISV_SVN_OFFSET + 1] ?? 0)
  const level = tcbLevels.find(({ tcb }) => svn >= tcb.isvsvn)
  return level === undefined || level.tcbStatus === 'Revoked'
}
