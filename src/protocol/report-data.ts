import { concatBytes, fromBase64Url, fromHex, utf8, type Bytes } from './bytes.ts'
import { sha256 } from './digest.ts'
import { REPORT_DATA_V2, type ReportDataBinding } from './envelope.ts'

/**
 * Bytes 0..31 of REPORT_DATA: SHA-256 over the raw bytes of the SPKI digest and of the identity tag, both given
 * as lowercase hex.
 */
export async function tlsAndIdentityDigest(
  tlsSpkiSha256: string,
  workloadIdentityTag: string,
): Promise<Bytes> {
  return sha256(concatBytes(fromHex(tlsSpkiSha256), fromHex(workloadIdentityTag)))
}

/**
 * Bytes 32..63 of REPORT_DATA: SHA-256 over the label, one zero byte, and 32 bytes each of: the receipt key's RFC 7638
 * thumbprint; in version 2 the digests of the HPKE key configuration and of the router's configuration; the caller's
 * nonce. An empty value counts as 32 zero bytes.
 */
export async function bindingDigest(binding: ReportDataBinding): Promise<Bytes> {
  const digests =
    binding.label === REPORT_DATA_V2
      ? [binding.hpke_key_config_sha256, binding.configuration_sha256, binding.nonce]
      : [binding.nonce]
  const thumbprint = fromBase64Url(binding.receipt_key_thumbprint)
  const parts = [utf8(binding.label), new Uint8Array(1), thumbprint, ...digests.map(orZeros)]
  return sha256(concatBytes(...parts))
}

function orZeros(hex: string): Bytes {
  return hex === '' ? new Uint8Array(32) : fromHex(hex)
}

/** The 64 bytes of REPORT_DATA for an envelope with these members. */
export async function reportData(envelope: {
  tls_spki_sha256: string
  workload_identity_tag: string
  report_data_binding: ReportDataBinding
}): Promise<Bytes> {
  return concatBytes(
    await tlsAndIdentityDigest(envelope.tls_spki_sha256, envelope.workload_identity_tag),
    await bindingDigest(envelope.report_data_binding),
  )
}
