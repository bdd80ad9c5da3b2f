import { equalBytes, fromBase64, toHex, type Bytes } from '../protocol/bytes.ts'
import {
  envelopeSchema,
  REPORT_DATA_V2,
  type Envelope,
  type ReportDataBinding,
} from '../protocol/envelope.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { readDocument } from '../protocol/read-document.ts'
import { bindingDigest, tlsAndIdentityDigest } from '../protocol/report-data.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { firstFault, judge, verdict, type Check, type Verdict } from './check.ts'
import type { VekChain } from './snp/chain.ts'
import type { SnpReport } from './snp/report.ts'
import { verifySnp, type SnpOptions } from './snp/verify-snp.ts'

const DOCUMENT = 'attestation envelope'

const NO_REVOCATION_LIST =
  "revocation: AMD's revocation list was not checked, for none was given and the envelope brings none"

export interface HardwareResult extends Verdict {
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Absent where the envelope has no certificates. */
  readonly report?: SnpReport
  readonly chain?: VekChain
  /** When the first certificate or the revocation list expires, in milliseconds since 1970. */
  readonly endsAt?: number
}

/**
 * Parses the JSON text of a served envelope.
 * @throws MalformedEvidence when it does not match the schema
 */
export function readEnvelope(text: string | Uint8Array): Envelope {
  return readDocument(envelopeSchema, parseStrictJson(text, DOCUMENT), DOCUMENT)
}

/**
 * Checks what the hardware alone proves: that the report is genuine, and that it names the envelope's TLS key, identity
 * tag, receipt key and configuration. Whether its guest is accepted is for a trust bundle to decide.
 * @throws MalformedEvidence when the report, a certificate or a base64 member cannot be parsed
 */
export async function verifyEnvelopeHardware(
  envelope: Envelope,
  options: SnpOptions,
): Promise<HardwareResult> {
  if (envelope.vcek_chain_pem === '') {
    return { ...verdict([judge('vcek_chain', 'vcek_chain_pem is empty', '')]), notes: [] }
  }
  const reportBytes = decode(envelope.snp_report_b64, 'snp_report_b64')
  const { crl = revocationListOf(envelope) } = options
  const snp = await verifySnp(reportBytes, envelope.vcek_chain_pem, { ...options, crl })
  const { report, chain, endsAt } = snp
  const bound = await checkReportData(envelope, report.reportData)
  return {
    ...verdict([...snp.checks, ...bound]),
    notes: crl === undefined ? [NO_REVOCATION_LIST] : [],
    report,
    ...(chain === undefined ? {} : { chain }),
    ...(endsAt === undefined ? {} : { endsAt }),
  }
}

/** AMD's revocation list from the envelope; its signature decides whether it is accepted, not its source. */
function revocationListOf({ snp_crl_b64: text }: Envelope): Bytes | undefined {
  return text === undefined ? undefined : decode(text, 'snp_crl_b64')
}

function decode(text: string, member: string): Bytes {
  try {
    return fromBase64(text)
  } catch {
    throw new MalformedEvidence(DOCUMENT, `${member}: not standard base64`)
  }
}

async function checkReportData(envelope: Envelope, reportData: Bytes): Promise<Check[]> {
  const { tls_spki_sha256: spki, workload_identity_tag: tag } = envelope
  const first = await tlsAndIdentityDigest(spki, tag)
  const names = equalBytes(first, reportData.slice(0, 32))
  const fault = firstFault(!names && 'bytes 0..31 are not the digest of TLS key and identity tag')
  const checks = [judge('report_data', fault, toHex(first))]
  const { report_data_binding: binding } = envelope
  if (binding === undefined) return checks
  const second = await bindingDigest(binding)
  const binds = equalBytes(second, reportData.slice(32))
  const bindingFault = firstFault(!binds && 'bytes 32..63 are not the digest of the binding')
  return [...checks, judge('report_data_binding', bindingFault, describe(binding))]
}

function describe(binding: ReportDataBinding): string {
  const key = `receipt key ${binding.receipt_key_thumbprint}`
  if (binding.label !== REPORT_DATA_V2) return key
  return `${key}, configuration ${binding.configuration_sha256}`
}
