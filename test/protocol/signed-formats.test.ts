import { CompactSign, calculateJwkThumbprint, compactVerify, importJWK, type JWK } from 'jose'
import { describe, expect, test } from 'vitest'
import { toHex, utf8 } from '../../src/protocol/bytes.ts'
import {
  parseCompactJws,
  signCompactJws,
  verifyJwsSignature,
} from '../../src/protocol/compact-jws.ts'
import { jwkThumbprint } from '../../src/protocol/jwk.ts'
import { reportData } from '../../src/protocol/report-data.ts'
import { timestampSchema } from '../../src/protocol/timestamp.ts'
import { makeKey } from '../support/synthetic-world.ts'

/** The same key as jose types it. */
function joseKey({ kty, crv, x, y }: { kty: string; crv: string; x: string; y: string }): JWK {
  return { kty, crv, x, y }
}

describe('compact JWS', () => {
  test('is read by jose as we write it, and by us as jose writes it', async () => {
    const { privateKey, jwk, kid } = await makeKey()
    const ours = await signCompactJws(utf8('{"a":1}'), { kid, typ: 'test+jwt', privateKey })
    const { payload, protectedHeader } = await compactVerify(
      ours,
      await importJWK(joseKey(jwk), 'ES256'),
    )
    expect(protectedHeader).toEqual({ alg: 'ES256', kid, typ: 'test+jwt' })
    expect(payload).toEqual(utf8('{"a":1}'))
    const theirs = await new CompactSign(utf8('{}'))
      .setProtectedHeader({ alg: 'ES256' })
      .sign(privateKey)
    expect(await verifyJwsSignature(parseCompactJws(theirs, 'JWS'), jwk, 'ES256')).toBe(true)
    expect(await verifyJwsSignature(parseCompactJws(theirs, 'JWS'), jwk, 'ES384')).toBe(false)
  })

  test('verifies the ES256 example of RFC 7515 appendix A.3', async () => {
    const jwk = {
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    } as const
    const text =
      'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt' +
      'cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djx' +
      'La8ISlSApmWQxfKTUJqPP3-Kg6NU1Q'
    expect(await verifyJwsSignature(parseCompactJws(text, 'JWS'), jwk, 'ES256')).toBe(true)
  })
})

describe('key thumbprint', () => {
  test('is the one jose computes, whatever other members the key has', async () => {
    const { jwk } = await makeKey()
    expect(await jwkThumbprint({ ...jwk, kid: 'other', use: 'sig' } as typeof jwk)).toBe(
      await calculateJwkThumbprint(joseKey(jwk)),
    )
  })
})

describe('REPORT_DATA', () => {
  const bound = {
    tls_spki_sha256: '11'.repeat(32),
    workload_identity_tag: '22'.repeat(32),
    report_data_binding: {
      label: 'cmr/report-data/v1',
      receipt_key_thumbprint: 'MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM',
      nonce: '',
    },
  } as const

  test('is the digest of key and tag, then the digest of label, receipt key and nonce', async () => {
    expect(toHex(await reportData(bound))).toBe(
      '5189c77d29fe5d546a045ec46986852785fea5c13ac7da9c115ff5fb6edf817c' +
        '413c520aed64c8f4dbbe4661abeabf38b4c03af8c295678db9f9e7e55f81554a',
    )
  })

  test.each([
    ['', '', '13581c5a0b0f913a6510e90e61a91b4eedced06bfab5bc5fe5b3a8edefeb5949'],
    [
      '66'.repeat(32),
      '44'.repeat(32),
      '4fad9415a71cf175aa8e09b7f623a0fbffdfccf79dea907a5e6b62be02d5f74e',
    ],
  ])(
    'of version 2 covers the HPKE digest %j, the configuration and the nonce %j',
    async (hpke, nonce, digest) => {
      const binding = {
        label: 'cmr/report-data/v2',
        receipt_key_thumbprint: bound.report_data_binding.receipt_key_thumbprint,
        hpke_key_config_sha256: hpke,
        configuration_sha256: '55'.repeat(32),
        nonce,
      } as const
      const all = await reportData({ ...bound, report_data_binding: binding })
      expect(toHex(all.slice(32))).toBe(digest)
    },
  )

  test('changes in its second half alone with the nonce', async () => {
    const nonce = '44'.repeat(32)
    const other = { ...bound, report_data_binding: { ...bound.report_data_binding, nonce } }
    const [without, withNonce] = [await reportData(bound), await reportData(other)]
    expect(withNonce.slice(0, 32)).toEqual(without.slice(0, 32))
    expect(toHex(withNonce.slice(32))).toBe(
      '8d913ac2824b631b34581f4791cb65a73c14f1ce134f68a7480cf6003b18f70a',
    )
  })
})

describe('timestamps', () => {
  test.each(['2026-11-20T12:00:00Z', '2024-02-29T23:59:59.123456789Z'])('%s is one', (text) => {
    expect(timestampSchema.safeParse(text).success).toBe(true)
  })

  test.each([
    '2026-02-29T12:00:00Z',
    '2026-11-20T24:00:00Z',
    '2026-11-20T12:00:60Z',
    '2026-11-20t12:00:00z',
    '2026-11-20T12:00:00+00:00',
    '2026-11-20',
  ])('%s is none', (text) => {
    expect(timestampSchema.safeParse(text).success).toBe(false)
  })
})
