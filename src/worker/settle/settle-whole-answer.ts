import type { Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Exchange } from './exchange.ts'
import type { SignedReceipt } from '../link/link.ts'
import { settleSigned, settleWithoutReceipt, settleWithReceipt, type SettleDeps } from './settle.ts'

/** The bytes of an exchange whose answer is sent in one piece, as its receipt names them. */
export interface WholeAnswerProof {
  /** SHA-256 of the provider's request and response, lowercase hex. */
  readonly requestDigest: string
  readonly responseDigest: string
  readonly evidenceSha256: string | null
  /** Whether `responseDigest` is over the decompressed bytes. */
  readonly decoded: boolean
  /** The receipt, where the daemon has signed it beside the answer. */
  readonly signed?: SignedReceipt | undefined
  /** The provider's own id of the answer, where it gave one. */
  readonly providerResponseId?: string | undefined
  /** The client's body as received, and the answer's as it will be delivered. */
  readonly clientRequest: Bytes
  readonly clientResponse: Bytes
}

/**
 * Settles an exchange before its answer is sent, with a receipt unless `receiptId` is null. If it fails, the answer
 * must be withheld.
 * @throws LinkUnavailable when the receipt could not be signed
 * @throws StorageUnavailable when the settlement could not be stored
 */
export async function settleWholeAnswer(
  exchange: Exchange,
  receiptId: string | null,
  proof: WholeAnswerProof,
  deps: SettleDeps,
): Promise<void> {
  if (receiptId === null) return settleWithoutReceipt(exchange, deps)
  if (proof.signed !== undefined) {
    return settleSigned(exchange, { id: receiptId, signed: proof.signed }, deps)
  }
  const digests = {
    providerRequest: proof.requestDigest,
    providerResponse: proof.responseDigest,
    clientRequest: await sha256Hex(proof.clientRequest),
    clientResponse: await sha256Hex(proof.clientResponse),
  }
  const { evidenceSha256, decoded, providerResponseId } = proof
  const bound = { digests, evidenceSha256, decoded, providerResponseId }
  await settleWithReceipt(exchange, bound, receiptId, deps)
}
