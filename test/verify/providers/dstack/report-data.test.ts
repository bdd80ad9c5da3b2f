import { describe, expect, test } from 'vitest'
import { concatBytes, fromHex, toHex, type Bytes } from '../../../../src/protocol/bytes.ts'
import { sha256 } from '../../../../src/protocol/digest.ts'
import { identifyReportData } from '../../../../src/verify/providers/dstack/report-data.ts'

const NONCE = '5a'.repeat(32)
const SPKI = 'c3'.repeat(32)
const LENGTHS = { ed25519: 32, ecdsa: 20 } as const

const layoutOf = (first: Bytes, algorithm: keyof typeof LENGTHS, address: string) =>
  identifyReportData(concatBytes(first, fromHex(NONCE)), {
    signer: { algorithm, address },
    nonce: NONCE,
    tlsSpkiSha256: SPKI,
  })

const paddedTo32 = (address: Bytes) => concatBytes(address, new Uint8Array(32 - address.length))

describe.each(['ed25519', 'ecdsa'] as const)('the REPORT_DATA of a signer by %s', (algorithm) => {
  const address = new Uint8Array(LENGTHS[algorithm]).fill(9)

  test('binds its address alone, or its address and the TLS key', async () => {
    const bound = await sha256(concatBytes(address, fromHex(SPKI)))
    expect(await layoutOf(paddedTo32(address), algorithm, toHex(address))).toBe('address')
    expect(await layoutOf(bound, algorithm, toHex(address))).toBe('tls')
  })

  test.each([0, 1, 19, 21, 31])(
    'is refused for an address of %i bytes, even where it holds that address or its hash',
    async (length) => {
      const wrong = new Uint8Array(length).fill(9)
      const refused = { code: 'malformed', message: 'a document cannot be read (signing address)' }
      const hashed = await sha256(concatBytes(wrong, fromHex(SPKI)))
      for (const first of [paddedTo32(wrong), hashed]) {
        await expect(layoutOf(first, algorithm, toHex(wrong))).rejects.toMatchObject(refused)
      }
    },
  )
})
