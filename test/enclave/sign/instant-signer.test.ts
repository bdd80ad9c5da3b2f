import { compactVerify, importJWK } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeReceiptKey, type ReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { UNATTESTED } from '../../../src/enclave/proofs/inference-hop.ts'
import {
  createInstantSigner,
  createReceiptSigner,
} from '../../../src/enclave/sign/receipt-signer.ts'
import { signRequestSchema } from '../../../src/protocol/link.ts'
import { wholeReceipts } from '../../support/signed-receipts.ts'
import { ask, signerDeps, type Json } from './signing-requests.ts'

let key: ReceiptKey

beforeAll(async () => {
  key = await makeReceiptKey()
})

async function open(jws = ''): Promise<string> {
  const { payload } = await compactVerify(jws, await importJWK(key.jwk, 'ES256'))
  return new TextDecoder().decode(payload)
}

describe('a receipt that is signed beside its answer', () => {
  const one = (claims: Json = {}, rest: Json = {}) =>
    signRequestSchema.parse({ receipts: [ask(claims, rest)] }).receipts[0] ?? fail()

  const fail = (): never => {
    throw new Error('nothing to sign')
  }

  it('is the one that would be signed for it by itself, under the same head', async () => {
    const request = one()
    const signed = createInstantSigner(signerDeps(key))(request)
    const asked = await createReceiptSigner(signerDeps(key))({ receipts: [request] })
    if (signed === undefined) throw new Error('not signed')
    expect(signed.heads).toEqual(asked.heads)
    const [jws, other] = [...wholeReceipts(signed), ...wholeReceipts(asked)].map(
      (receipt) => receipt.jws,
    )
    expect(await open(jws)).toBe(await open(other))
  })

  it('comes without the text of a head that is known', () => {
    const sign = createInstantSigner(signerDeps(key))
    const [head] = sign(one())?.heads ?? []
    const { sha256, evidence_refs: refs } = head ?? {}
    expect(sign(one(), sha256)?.heads).toEqual([{ sha256, evidence_refs: refs }])
  })

  const messageKey = { algorithm: 'ed25519', address: 'ab'.repeat(32) } as const

  it.each([
    [
      'under a configuration that was never in effect',
      one({}, { configuration_sha256: '00'.repeat(32) }),
      {},
    ],
    ['of a provider whose evidence is not proven', one({}, { provider: 'vega' }), {}],
    [
      'of a provider that does not meet the constraints',
      one({ constraints: { min: 'hardware' } }),
      {},
    ],
    [
      'of a provider whose own signature must be fetched first',
      one(),
      { proofs: { hop: () => ({ ...UNATTESTED, messageKey }) } },
    ],
  ])('is left to be asked for %s', (_name, request, change) => {
    expect(createInstantSigner(signerDeps(key, change))(request)).toBeUndefined()
  })
})
