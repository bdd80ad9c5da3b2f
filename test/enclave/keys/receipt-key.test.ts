import { beforeAll, describe, expect, it } from 'vitest'
import { jwkThumbprint } from '../../../src/protocol/jwk.ts'
import { makeReceiptKey, type ReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'

const SCHEME = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

let key: ReceiptKey
let publicKey: CryptoKey

beforeAll(async () => {
  key = await makeReceiptKey()
  publicKey = await crypto.subtle.importKey('jwk', key.jwk, SCHEME, false, ['verify'])
})

const verify = (signature: Buffer, data: Buffer) =>
  crypto.subtle.verify(SCHEME, publicKey, new Uint8Array(signature), new Uint8Array(data))

describe('a receipt key', () => {
  it('gives out its public half and a way to sign, and nothing else', async () => {
    const { kty, crv, x, y } = key.jwk
    expect(key).toEqual({
      sign: expect.any(Function),
      kid: await jwkThumbprint(key.jwk),
      jwk: { kty, crv, x, y, kid: key.kid, alg: 'ES256', use: 'sig' },
    })
    expect(Reflect.ownKeys(key)).toEqual(['sign', 'kid', 'jwk'])
  })

  it('signs so that others can verify, and only what was signed', async () => {
    const data = Buffer.from('what is signed')
    const signature = key.sign(data)
    expect(await verify(signature, data)).toBe(true)
    expect(await verify(signature, Buffer.from('what is not'))).toBe(false)
  })

  it('keeps the place of integers that begin with zeros', async () => {
    const signed = Array.from({ length: 3000 }, (_, index) => {
      const data = Buffer.from(`text ${index}`)
      return { data, signature: key.sign(data) }
    })
    const short = signed.filter(({ signature }) => signature[0] === 0 || signature[32] === 0)
    expect(short.length).toBeGreaterThan(0)
    expect(signed.every(({ signature }) => signature.length === 64)).toBe(true)
    const verified = await Promise.all(short.map(({ data, signature }) => verify(signature, data)))
    expect(verified.every(Boolean)).toBe(true)
  })
})
