import { encode } from '@msgpack/msgpack'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { concatBytes, copyBytes, utf8 } from '../../../../src/protocol/bytes.ts'
import { decodeMessagePack } from '../../../../src/verify/providers/dstack/message-pack.ts'

const decode = (bytes: Uint8Array) => decodeMessagePack(copyBytes(bytes), 'it')

const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    fc.string({ maxLength: 300 }),
    fc.nat(),
    fc.maxSafeNat(),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 300 }),
    fc.array(tie('any'), { maxLength: 20 }),
    fc.dictionary(fc.string(), tie('any'), { maxKeys: 20 }),
  ),
})).any

describe('MessagePack', () => {
  it('is decoded as an independent library encodes it', () => {
    fc.assert(
      fc.property(value, (one) => {
        expect(decode(encode(one))).toEqual(one)
      }),
    )
  })

  it('is decoded in its long forms', () => {
    for (const length of [40, 300, 70_000]) {
      const text = 'x'.repeat(length)
      const list = Array.from({ length }, () => 1)
      const members = Object.fromEntries(list.map((one, index) => [`${index}`, one]))
      for (const one of [text, utf8(text), list, members]) {
        expect(decode(encode(one))).toEqual(one)
      }
    }
  })

  const UNSUPPORTED = 'not MessagePack that an attestation is made of'

  it.each<[string, Uint8Array, string]>([
    ['with something behind', concatBytes(encode(1), encode(1)), 'something follows it'],
    ['cut off', encode('text').slice(0, -1), 'it ends too early'],
    ['that is nothing', new Uint8Array(), 'it ends too early'],
    ['with a key that is no text', Uint8Array.of(0x81, 1, 1), UNSUPPORTED],
    ['with a member given twice', Uint8Array.of(0x82, 0xa1, 97, 1, 0xa1, 97, 1), UNSUPPORTED],
    ['with text that is none', Uint8Array.of(0xa1, 0xff), 'not UTF-8'],
    [
      'with a number beyond all that are exact',
      Uint8Array.of(0xcf, ...new Uint8Array(8).fill(255)),
      UNSUPPORTED,
    ],
    ['with a fraction', encode(1.5), UNSUPPORTED],
    ['with an extension', Uint8Array.of(0xd4, 1, 1), UNSUPPORTED],
    ['nested ten deep', encode([[[[[[[[[[1]]]]]]]]]]), UNSUPPORTED],
    ['with lists in lists that each say they are long', bomb(), UNSUPPORTED],
    [
      'with a list longer than itself',
      Uint8Array.of(0xdd, 255, 255, 255, 255),
      'it ends too early',
    ],
  ])('is refused %s', (_what, bytes, reason) => {
    expect(() => decode(bytes)).toThrow(`malformed it: ${reason}`)
  })

  it('gives no object another prototype', () => {
    const decoded = decode(concatBytes(Uint8Array.of(0x81), encode('__proto__'), encode({ a: 1 })))
    expect(Object.getPrototypeOf(decoded)).toBe(Object.prototype)
    expect(decoded).not.toHaveProperty('a')
  })
})

/** A library that reserves what these headers say takes gigabytes. */
function bomb(): Uint8Array {
  return new Uint8Array(60_000).map((_, index) => [0xdc, 0xff, 0xff][index % 3] ?? 0)
}
