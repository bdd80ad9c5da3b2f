import { signResponseSchema, type SignResponse } from '../../src/protocol/link.ts'

/** A receipt of a `SignResponse`, put together. */
export interface WholeReceipt {
  readonly jws: string
  readonly sha256: string
  readonly evidence_refs: readonly string[]
}

/** The receipts of a daemon's answer, put together. @throws Error when it is no `SignResponse` */
export function wholeReceipts(answer: unknown): readonly WholeReceipt[] {
  const { heads, receipts }: SignResponse = signResponseSchema.parse(answer)
  return receipts.map(({ head: index, tail, sha256 }) => {
    const head = heads[index]
    if (head?.text === undefined) throw new Error('a receipt without its head')
    return { jws: head.text + tail, sha256, evidence_refs: head.evidence_refs }
  })
}
