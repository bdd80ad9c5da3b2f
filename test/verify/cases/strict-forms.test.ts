import { describe, expect, test } from 'vitest'
import { concatBytes, fromHex, utf8, type Bytes } from '../../../src/protocol/bytes.ts'
import { verifyEcdsaSignature } from '../../../src/verify/x509/ecdsa-signature.ts'
import { readCertificate } from '../../../src/verify/x509/certificate.ts'
import { readPem } from '../../../src/verify/x509/pem.ts'
import { readRevocationList } from '../../../src/verify/x509/revocation-list.ts'
import { revocationList, syntheticChain } from '../../support/synthetic-snp.ts'

async function leaf(): Promise<Bytes> {
  const [first] = readPem((await syntheticChain()).pem)
  if (first === undefined) throw new Error('the chain is empty')
  return first.der
}

const VERSION_3 = 'a003020102'

/** The same structure with the byte at the end of the first such sequence changed. */
function changedAtEndOf(der: Bytes, hex: string, value: number): Bytes {
  const wanted = fromHex(hex)
  const at = der.findIndex((_, start) => wanted.every((byte, i) => der[start + i] === byte))
  expect(at).toBeGreaterThan(0)
  return der.with(at + wanted.length - 1, value)
}

describe('a certificate', () => {
  test.each([0, 1, 3])(
    'of encoded version %i is refused, since only version 3 is read',
    async (version) => {
      const der = await leaf()
      expect(() => readCertificate(der)).not.toThrow()
      expect(() => readCertificate(changedAtEndOf(der, VERSION_3, version))).toThrow(
        'malformed X.509 structure: not a version 3 certificate',
      )
    },
  )

  test('with bytes after its end is refused, even a zero', async () => {
    const longer = concatBytes(await leaf(), Uint8Array.of(0))
    expect(() => readCertificate(longer)).toThrow('malformed X.509 structure: bytes after the end')
  })
})

describe('a revocation list', () => {
  test.each([0, 2])(
    'of encoded version %i is refused, since only version 2 is read',
    async (version) => {
      const der = await revocationList([])
      expect(() => readRevocationList(der)).not.toThrow()
      expect(() => readRevocationList(changedAtEndOf(der, '020101', version))).toThrow(
        'malformed X.509 structure: not a version 2 revocation list',
      )
    },
  )

  test('with bytes after its end is refused, even a zero', async () => {
    const longer = concatBytes(await revocationList([]), Uint8Array.of(0))
    expect(() => readRevocationList(longer)).toThrow(
      'malformed X.509 structure: bytes after the end',
    )
  })
})

describe('a PEM file', () => {
  test('is read up to 64 KiB and refused above, whatever is in it', () => {
    expect(readPem('\n'.repeat(65_536))).toEqual([])
    expect(() => readPem('\n'.repeat(65_537))).toThrow('malformed PEM: too large')
  })
})

describe('an ECDSA signature', () => {
  const signed = utf8('signed')

  async function signature() {
    const ecdsa = { name: 'ECDSA', namedCurve: 'P-256' }
    const keys = await crypto.subtle.generateKey(ecdsa, true, ['sign', 'verify'])
    const raw = new Uint8Array(
      await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, keys.privateKey, signed),
    )
    const spki = new Uint8Array(await crypto.subtle.exportKey('spki', keys.publicKey))
    return { spki, r: integer(raw.slice(0, 32)), s: integer(raw.slice(32)) }
  }

  /** An INTEGER of DER that is not negative. */
  function integer(digits: Bytes): Bytes {
    const from = digits.findIndex((byte) => byte !== 0)
    const short = digits.slice(from)
    const body = (short[0] ?? 0) < 0x80 ? short : Uint8Array.of(0, ...short)
    return Uint8Array.of(0x02, body.length, ...body)
  }

  const sequence = (...parts: readonly Bytes[]) => {
    const body = concatBytes(...parts)
    return Uint8Array.of(0x30, body.length, ...body)
  }

  test('verifies as two numbers, and neither with a third nor with bytes after them', async () => {
    const { spki, r, s } = await signature()
    const verify = (text: Bytes) => verifyEcdsaSignature({ signed, signature: text }, spki, 'P-256')
    expect(await verify(sequence(r, s))).toBe(true)
    expect(await verify(sequence(r))).toBe(false)
    expect(await verify(sequence(r, s, Uint8Array.of(0x02, 0)))).toBe(false)
    expect(await verify(concatBytes(sequence(r, s), Uint8Array.of(0)))).toBe(false)
  })
})
