import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { concatBytes, fromHex, fromUtf8, toHex, utf8 } from '../../src/protocol/bytes.ts'
import { AnswerCipher, deriveAnswerKeys } from '../../src/protocol/ehbp-answer.ts'
import { encodeFrame, FrameReader, FramingError } from '../../src/protocol/ehbp-frames.ts'
import { encodeKeyConfig, readKeyConfig } from '../../src/protocol/hpke-key-config.ts'

/** `test-vectors` of the protocol's own repository, version 0.3.1. */
const VECTOR = {
  exportedSecret: '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',
  requestEnc: '202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f',
  responseNonce: '404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f',
  derivedKey: '40ec528847cd4e928449f2ed1a70a7d1e8ee317d5e900424fc1dd5b0475b97f7',
  derivedNonceBase: 'f8b0ce9466f27aa6243c65f9',
  plaintext: '68656c6c6f2066726f6d207465737420766563746f72',
  encryptedResponse:
    '0000002647e74d9a561b60ff42ac7ffbb4caf6b6d5ad0bb7621e41840d2ab7de7208ff7a59d0a2a482cc',
}

const SEEDS = [VECTOR.exportedSecret, VECTOR.requestEnc, VECTOR.responseNonce].map(fromHex)

function seeds(): Parameters<typeof AnswerCipher.derive> {
  const [secret, enc, nonce] = SEEDS
  if (!secret || !enc || !nonce) throw new Error('three seeds')
  return [secret, enc, nonce]
}

describe('the keys of an answer', () => {
  test("are those of the protocol's own vectors", async () => {
    const { key, nonce } = await deriveAnswerKeys(...seeds())
    expect([toHex(key), toHex(nonce)]).toEqual([VECTOR.derivedKey, VECTOR.derivedNonceBase])
  })

  test("open the answer of the protocol's own vectors, and seal the same bytes", async () => {
    const frames = [...new FrameReader(100).push(fromHex(VECTOR.encryptedResponse))]
    const opener = await AnswerCipher.derive(...seeds())
    const plain = await opener.open(frames[0] ?? new Uint8Array())
    expect(toHex(plain)).toBe(VECTOR.plaintext)
    const sealer = await AnswerCipher.derive(...seeds())
    expect(toHex(encodeFrame(await sealer.seal(plain)))).toBe(VECTOR.encryptedResponse)
  })

  test('open frames in the order they were sealed in, and no other', async () => {
    const sealer = await AnswerCipher.derive(...seeds())
    const [first, second] = [await sealer.seal(utf8('a')), await sealer.seal(utf8('b'))]
    const opener = await AnswerCipher.derive(...seeds())
    expect(fromUtf8(await opener.open(first))).toBe('a')
    expect(fromUtf8(await opener.open(second))).toBe('b')
    const swapped = await AnswerCipher.derive(...seeds())
    await expect(swapped.open(second)).rejects.toMatchObject({ name: 'OperationError' })
  })

  test('count past the first byte of the nonce', async () => {
    const sealer = await AnswerCipher.derive(...seeds())
    const opener = await AnswerCipher.derive(...seeds())
    for (let i = 0; i < 300; i++) {
      expect(fromUtf8(await opener.open(await sealer.seal(utf8(String(i)))))).toBe(String(i))
    }
  })
})

describe('frames', () => {
  test('come out as they went in, however the body is cut into pieces', () => {
    const body = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 })
    fc.assert(
      fc.property(body, fc.integer({ min: 1, max: 30 }), (ciphertexts, step) => {
        const wire = concatBytes(...ciphertexts.map(encodeFrame))
        const reader = new FrameReader(40)
        const out: string[] = []
        for (let at = 0; at < wire.length; at += step) {
          for (const frame of reader.push(wire.slice(at, at + step))) out.push(toHex(frame))
        }
        reader.end()
        expect(out).toEqual(ciphertexts.map(toHex))
      }),
    )
  })

  test('that are empty are skipped', () => {
    const wire = concatBytes(encodeFrame(new Uint8Array()), encodeFrame(utf8('x')))
    expect([...new FrameReader(10).push(wire)].map(toHex)).toEqual(['78'])
  })

  test('that are announced too large are refused before they come', () => {
    const push = () => [...new FrameReader(10).push(Uint8Array.of(0xff, 0xff, 0xff, 0xff))]
    expect(push).toThrow(new FramingError('a frame of 4294967295 bytes is too large'))
  })

  test.each([[[0, 0]], [[0, 0, 0, 2, 1]]])('that end early are noticed: %j', (bytes) => {
    const reader = new FrameReader(10)
    expect([...reader.push(Uint8Array.from(bytes))]).toEqual([])
    expect(() => reader.end()).toThrow(new FramingError('the body ends within a frame'))
  })
})

describe('a key configuration', () => {
  const key = fromHex('11'.repeat(32))
  const config = encodeKeyConfig(key)

  test('is that of RFC 9458 section 3 for the one suite', () => {
    expect(toHex(config)).toBe(`000020${'11'.repeat(32)}000400010002`)
    expect(toHex(readKeyConfig(config))).toBe(toHex(key))
  })

  test.each([
    ['another key id', 0],
    ['another KEM', 2],
    ['another length of suites', 36],
    ['another KDF', 38],
    ['another AEAD', 40],
  ])('with %s is refused', (_what, at) => {
    const changed = config.map((byte, index) => (index === at ? byte ^ 1 : byte))
    expect(() => readKeyConfig(changed)).toThrow('malformed HPKE key configuration')
  })

  test.each([0, 20, 40, 42])('of %d bytes is refused', (length) => {
    const wrong = concatBytes(config, Uint8Array.of(0)).slice(0, length)
    expect(() => readKeyConfig(wrong)).toThrow('malformed HPKE key configuration')
  })
})
