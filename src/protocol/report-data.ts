import { concatBytes, fromBase64Url, fromHex, utf8, type Bytes } from './bytes.ts'
import { sha256 } from './digest.ts'
import type { ReportDataBinding } from './envelope.ts'

/**
 * Bytes 0..31 of REPORT_DATA: SHA-256 over the raw bytes of the SPKI digest and of the identity tag, both given
 * as lowercase hex (spec: "Attestation envelope").
 */
export async function tlsAndIdentityDigest(
  tlsSpkiSha256: string,
  workloadIdentityTag: string,
): Promise<Bytes> {
  return sha256(concatBytes(fromHex(tlsSpkiSha256), fromHex(workloadIdentityTag)))
}

/**
 * Bytes 32..63 of REPORT_DATA: SHA-256 over the label, one zero byte, the 32 bytes of the receipt key's RFC 7638
 * thumbprint, and the 32 bytes of the caller's nonce or zeros.
 */
export async function receiptKeyDigest(binding: ReportDataBinding): Promise<Bytes> {
  const nonce = binding.nonce === '' ? new Uint8Array(32) : fromHex(binding.nonce)
  const thumbprint = fromBase64Url(binding.receipt_key_thumbprint)
  return sha256(concatBytes(utf8(binding.label), new Uint8Array(1), thumbprint, nonce))
}

/** All 64 bytes of REPORT_DATA that an envelope of these members claims. */
export async function reportData(envelope: {
  tls_spki_sha256: string
  workload_identity_tag: string
  report_data_binding: ReportDataBinding
}): Promise<Bytes> {
  return concatBytes(
    await tlsAndIdentityDigest(envelope.tls_spki_sha256, envelope.workload_identity_tag),
    await receiptKeyDigest(envelope.report_data_binding),
  )
}
