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

export const inEnvelope = (change: (envelope: Envelope) => Partial<Envelope>) => (text: string) => {
  const envelope = envelopeSchema.parse(JSON.parse(text))
  return JSON.stringify({ ...envelope, ...change(envelope) })
}
export const inBinding = (name: 'receipt_key_thumbprint' | 'configuration_sha256' | 'nonce') =>
  inEnvelope(({ report_data_binding: binding }) => ({
    report_data_binding: { ...binding, [name]: otherDigit(binding[name], 5) },
  }))
export const inCertificate = (index: number) =>
  inEnvelope(({ vcek_chain_pem: pem }) => {
    const end = pem
      .split('-----END')
      .slice(0, index + 1)
      .join('-----END').length
    return { vcek_chain_pem: otherDigit(pem, end - 80) }
  })
export const inReport = (offset: number) =>
  inEnvelope(({ snp_report_b64: report }) => ({ snp_report_b64: flipByte(report, offset) }))
export const inPart = (member: string, part: number) => (text: string) => {
  const document = z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  const jws = z.string().parse(document[member])
  const start = jws.split('.').slice(0, part).join('.').length
  return JSON.stringify({ ...document, [member]: otherDigit(jws, start + 12) })
}
