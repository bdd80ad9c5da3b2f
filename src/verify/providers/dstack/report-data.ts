import { concatBytes, equalBytes, fromHex, type Bytes } from '../../../protocol/bytes.ts'
import { sha256 } from '../../../protocol/digest.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import type { MessageKey } from '../judged-evidence.ts'

export interface ReportDataExpectation {
  readonly signer: MessageKey
  /** 64 lowercase hex digits. */
  readonly nonce: string
  readonly tlsSpkiSha256: string
}

/** How the dstack family fills the first half of REPORT_DATA; the second half is always the nonce. */
export type ReportDataLayout = 'tls' | 'address'

/** A public key of ed25519, or an Ethereum address. */
const ADDRESS_BYTES: Readonly<Record<MessageKey['algorithm'], number>> = { ed25519: 32, ecdsa: 20 }

/**
 * Identifies the layout of a quote's REPORT_DATA, and checks that it contains exactly this signer and nonce, and this
 * TLS key where the layout has room for it. `address` (the older layout, and that of gateways which derive the
 * address from a public key) binds no TLS key.
 * @throws EvidenceRefused when no layout fits
 */
export async function identifyReportData(
  reportData: Bytes,
  { signer, nonce, tlsSpkiSha256 }: ReportDataExpectation,
): Promise<ReportDataLayout> {
  const address = fromHex(signer.address)
  if (address.length !== ADDRESS_BYTES[signer.algorithm]) {
    throw new EvidenceRefused('malformed', ['signing address'])
  }
  const [first, second] = [reportData.slice(0, 32), reportData.slice(32, 64)]
  if (!equalBytes(second, fromHex(nonce))) throw new EvidenceRefused('nonce')
  const padded = concatBytes(address, new Uint8Array(32 - address.length))
  if (equalBytes(first, padded)) return 'address'
  const bound = await sha256(concatBytes(address, fromHex(tlsSpkiSha256)))
  if (equalBytes(first, bound)) return 'tls'
  throw new EvidenceRefused('tls_key')
}
