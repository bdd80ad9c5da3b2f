import { createHash } from 'node:crypto'
import type { CachedEnvelope } from '../../../src/enclave/envelope/envelope-cache.ts'

/** An envelope of the right form that cannot be verified. */
export function keptEnvelope({
  issued = 1,
  nonce = '',
  capturedAt = 0,
  padding = 0,
  configurationSha256 = 'cf'.repeat(32),
}: {
  issued?: number
  nonce?: string
  capturedAt?: number
  padding?: number
  configurationSha256?: string
} = {}): CachedEnvelope {
  const report = Buffer.alloc(1184)
  report.writeUInt32LE(5, 0)
  report.writeUInt32LE(1, 0x34)
  report.set([0x19, 0x11, 0x01], 0x188)
  report.writeBigUInt64LE(0x30000n, 8)
  const envelope: CachedEnvelope['envelope'] = {
    schema: 'service.attestation/v1',
    workload: 'router',
    snp_report_b64: report.toString('base64'),
    vcek_chain_pem: 'x'.repeat(padding),
    tls_spki_sha256: '11'.repeat(32),
    workload_identity_tag: '22'.repeat(32),
    workload_identity_manifest_jws: 'a.b.c',
    trust_bundle_url: '/.well-known/trust.json',
    issued_at: new Date(issued * 1000).toISOString(),
    max_age_seconds: 3600,
    report_data_binding: {
      label: 'cmr/report-data/v2',
      receipt_key_thumbprint: 'A'.repeat(43),
      hpke_key_config_sha256: '',
      configuration_sha256: configurationSha256,
      nonce,
    },
  }
  const json = JSON.stringify(envelope)
  return {
    envelope,
    json,
    sha256: createHash('sha256').update(json).digest('hex'),
    configurationSha256,
    measurement: '33'.repeat(48),
    capturedAt,
    check: { verified: true, failed: [], verifiedAt: 1_700_000_000, accepted: undefined },
  }
}
