import { compactVerify, createRemoteJWKSet } from 'jose'
import type { ReceiptClaims } from '../../src/protocol/receipt.ts'
import type { Stack } from './stack.ts'

/** The claims of a receipt as its owner fetches and verifies it. Throws unless it is there and verifies. */
export async function claimsOf(stack: Stack, receiptId: string): Promise<ReceiptClaims> {
  const answer = await stack.fetch(`/v1/receipts/${receiptId}`)
  if (answer.status !== 200) throw new Error(`the receipt answered ${answer.status}`)
  const { receipt }: { receipt: string } = await answer.json()
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', stack.local.base_url))
  const { payload } = await compactVerify(receipt, keys, { algorithms: ['ES256'] })
  const claims: ReceiptClaims = JSON.parse(new TextDecoder().decode(payload))
  return claims
}
