import type { SignResponse } from '../../protocol/link.ts'
import type { ReceiptKey } from '../keys/receipt-key.ts'
import type { ReceiptFrame } from './receipt-frame.ts'

/** A receipt without its signature. */
export interface UnsignedReceipt {
  readonly frame: ReceiptFrame
  /** The JWS signing input after the head of the frame. */
  readonly claims: string
}

/**
 * Signs receipts. The answer has each head once, and without its text if the caller already has it.
 * @param knownHead the SHA-256 of a head that the caller has
 */
export function signBatch(
  receipts: readonly UnsignedReceipt[],
  key: ReceiptKey,
  knownHead?: string,
): SignResponse {
  const indexes = new Map<ReceiptFrame, number>()
  const signed = receipts.map(({ frame, claims }) => {
    const head = indexes.get(frame) ?? indexes.size
    indexes.set(frame, head)
    const input = Buffer.concat([frame.bytes, Buffer.from(claims, 'latin1')])
    const tail = `${claims}.${key.sign(input).toString('base64url')}`
    const sha256 = frame.hashed.copy().update(tail, 'latin1').digest('hex')
    return { head, tail, sha256 }
  })
  const heads = [...indexes.keys()].map(({ head: { text, ...rest } }) =>
    rest.sha256 === knownHead ? rest : { text, ...rest },
  )
  return { kid: key.kid, heads, receipts: signed }
}
