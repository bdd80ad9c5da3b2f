import type { ReceiptKey } from '../keys/receipt-key.ts'
import { AsciiText } from './ascii-text.ts'
import type { ReceiptFrame } from './receipt-frame.ts'

/** A receipt without its signature. */
export interface UnsignedReceipt {
  readonly frame: ReceiptFrame
  /** The JWS signing input after the head of the frame. */
  readonly claims: string
}

const OPENING = '{"jws":"'
const REFS = '","evidence_refs":'
const CLOSING = '}'

/** A dot and 64 bytes in base64url. */
const SIGNATURE_CHARS = 1 + 86

/**
 * Signs receipts and serialises the `SignResponse`. Every receipt is written once, at its place in the answer, and
 * signed there: it needs no escaping, and as strings the receipts of a batch would be copied three times more.
 */
export function signBatch(receipts: readonly UnsignedReceipt[], key: ReceiptKey): Buffer {
  const start = `{"kid":${JSON.stringify(key.kid)},"receipts":[`
  const end = ']}'
  const commas = receipts.length - 1
  const length = receipts.reduce((sum, receipt) => sum + lengthOf(receipt), commas)
  const text = new AsciiText(start.length + length + end.length)
  text.add(start)
  for (const [index, { frame, claims }] of receipts.entries()) {
    text.add(index === 0 ? OPENING : `,${OPENING}`)
    const from = text.length
    text.add(frame.head)
    text.add(claims)
    const signature = key.sign(text.since(from)).toString('base64url')
    text.add(`.${signature}${REFS}${frame.evidenceRefs}${CLOSING}`)
  }
  text.add(end)
  return text.whole()
}

function lengthOf({ frame: { head, evidenceRefs }, claims }: UnsignedReceipt): number {
  const jws = head.length + claims.length + SIGNATURE_CHARS
  return OPENING.length + jws + REFS.length + evidenceRefs.length + CLOSING.length
}
