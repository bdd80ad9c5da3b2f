import { z } from 'zod'
import { flipByte, otherDigit } from './tamperings.ts'

/** One changed byte in the text of a document as a router sends it. */

const envelopeSchema = z.looseObject({
  snp_report_b64: z.string(),
  vcek_chain_pem: z.string(),
  snp_crl_b64: z.string(),
  tls_spki_sha256: z.string(),
  workload_identity_tag: z.string(),
  workload_identity_manifest_jws: z.string(),
  report_data_binding: z.looseObject({
    receipt_key_thumbprint: z.string(),
    configuration_sha256: z.string(),
    hpke_key_config_sha256: z.string(),
    nonce: z.string(),
  }),
})
type Envelope = z.output<typeof envelopeSchema>

const inEnvelope = (change: (envelope: Envelope) => Partial<Envelope>) => (text: string) => {
  const envelope = envelopeSchema.parse(JSON.parse(text))
  return JSON.stringify({ ...envelope, ...change(envelope) })
}
const inBinding = (name: 'receipt_key_thumbprint' | 'configuration_sha256' | 'nonce') =>
  inEnvelope(({ report_data_binding: binding }) => ({
    report_data_binding: { ...binding, [name]: otherDigit(binding[name], 5) },
  }))
const inCertificate = (index: number) =>
  inEnvelope(({ vcek_chain_pem: pem }) => {
    const end = pem
      .split('-----END')
      .slice(0, index + 1)
      .join('-----END').length
    return { vcek_chain_pem: otherDigit(pem, end - 80) }
  })
const inReport = (offset: number) =>
  inEnvelope(({ snp_report_b64: report }) => ({ snp_report_b64: flipByte(report, offset) }))
export const inPart = (member: string, part: number) => (text: string) => {
  const document = z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  const jws = z.string().parse(document[member])
  const start = jws.split('.').slice(0, part).join('.').length
  return JSON.stringify({ ...document, [member]: otherDigit(jws, start + 12) })
}

/** A part of the evidence, what changes a byte of it, and the one box of the verifier page that turns red. */
export const EVIDENCE_TAMPERINGS: readonly (readonly [
  part: string,
  change: (text: string) => string,
  box: string,
])[] = [
  ['the report: its version', inReport(0), 'report'],
  ['the report: the policy of the guest', inReport(8), 'report'],
  ['the report: the data that it binds', inReport(0x50), 'report'],
  ['the report: the measurement', inReport(0x90), 'report'],
  ['the report: the id of the chip', inReport(0x1a0), 'report'],
  ['the report: the signature', inReport(0x2a0), 'report'],
  ['the chain: the chip', inCertificate(0), 'chip'],
  ['the chain: the authority', inCertificate(1), 'chip'],
  ['the chain: the root', inCertificate(2), 'chip'],
  [
    'the revocation list',
    inEnvelope(({ snp_crl_b64: list }) => ({ snp_crl_b64: flipByte(list, 200) })),
    'revocation',
  ],
  [
    'the manifest',
    inEnvelope(({ workload_identity_manifest_jws: jws }) => ({
      workload_identity_manifest_jws: otherDigit(jws, jws.length - 20),
    })),
    'manifest',
  ],
  [
    'the TLS key',
    inEnvelope(({ tls_spki_sha256: key }) => ({ tls_spki_sha256: otherDigit(key, 5) })),
    'identity',
  ],
  [
    'the release tag',
    inEnvelope(({ workload_identity_tag: tag }) => ({
      workload_identity_tag: otherDigit(tag, 5),
    })),
    'identity',
  ],
  ['the receipt key', inBinding('receipt_key_thumbprint'), 'binding'],
  ['the configuration', inBinding('configuration_sha256'), 'binding'],
  [
    'the HPKE key',
    inEnvelope(({ report_data_binding: binding }) => ({
      report_data_binding: { ...binding, hpke_key_config_sha256: 'ab'.repeat(32) },
    })),
    'binding',
  ],
  ['the nonce, after the report', inBinding('nonce'), 'binding'],
  ['the text', (text: string) => `[${text.slice(1)}`, 'evidence'],
]
