import { toBase64, toHex } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import {
  ENVELOPE_SCHEMA,
  REPORT_DATA_V2,
  WORKLOAD,
  type Envelope,
} from '../../protocol/envelope.ts'
import { reportData } from '../../protocol/report-data.ts'
import { readReport } from '../../verify/snp/report.ts'
import type { ReportSource } from '../snp/report-source.ts'

/** The content of an envelope besides the platform's own statements. */
export interface EnvelopeSubject {
  readonly kid: string
  readonly tlsSpkiSha256: string
  readonly identityTag: string
  readonly manifestJws: string
  readonly trustBundleUrl: string
  /** SHA-256 of the configuration file's bytes, lowercase hex. */
  readonly configurationSha256: string
  /** SHA-256 of the published HPKE key configuration; empty where there is none. */
  readonly hpkeKeyConfigSha256: string
}

/** A served envelope with the exact bytes that its digest covers. */
export interface ServedEnvelope {
  readonly envelope: Envelope
  readonly json: string
  readonly sha256: string
  /** SHA-256 of the bound configuration. */
  readonly configurationSha256: string
  /** The launch digest that the report carries, lowercase hex. */
  readonly measurement: string
  /** Milliseconds. */
  readonly capturedAt: number
}

/** How long clients may rely on an envelope, and the daemon on its own one, seconds. */
export const ENVELOPE_MAX_AGE_SECONDS = 3600

/**
 * Captures a report for the subject and the nonce (64 hex digits or empty), and wraps it.
 * @throws CaptureError when the platform gives no valid report with certificates
 */
export async function buildEnvelope(
  source: ReportSource,
  subject: EnvelopeSubject,
  { nonce, now }: { nonce: string; now: () => number },
): Promise<ServedEnvelope> {
  const bound = {
    tls_spki_sha256: subject.tlsSpkiSha256,
    workload_identity_tag: subject.identityTag,
    report_data_binding: {
      label: REPORT_DATA_V2,
      receipt_key_thumbprint: subject.kid,
      hpke_key_config_sha256: subject.hpkeKeyConfigSha256,
      configuration_sha256: subject.configurationSha256,
      nonce,
    },
  } as const
  const { report, chainPem, crl } = await source.capture(await reportData(bound))
  const capturedAt = now()
  const envelope = {
    schema: ENVELOPE_SCHEMA,
    workload: WORKLOAD,
    snp_report_b64: toBase64(report),
    vcek_chain_pem: chainPem,
    ...(crl === undefined ? {} : { snp_crl_b64: toBase64(crl) }),
    ...bound,
    workload_identity_manifest_jws: subject.manifestJws,
    trust_bundle_url: subject.trustBundleUrl,
    issued_at: new Date(capturedAt).toISOString(),
    max_age_seconds: ENVELOPE_MAX_AGE_SECONDS,
  } as const
  const json = JSON.stringify(envelope)
  return {
    envelope,
    json,
    sha256: await sha256Hex(json),
    configurationSha256: subject.configurationSha256,
    measurement: toHex(readReport(report).measurement),
    capturedAt,
  }
}
