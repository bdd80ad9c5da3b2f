import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  concatBytes,
  fromBase64,
  fromBase64Url,
  fromHex,
  toHex,
  utf8,
  type Bytes,
} from '../../../src/protocol/bytes.ts'
import { envelopeSchema } from '../../../src/protocol/envelope.ts'
import {
  buildEnvelope,
  type EnvelopeSubject,
} from '../../../src/enclave/envelope/build-envelope.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { createSimulatedSource } from '../../../src/enclave/snp/simulated-source.ts'
import { NOW, syntheticChain } from '../../support/synthetic-snp.ts'

const SUBJECT = {
  kid: 'cxNRP-c2-nyQgjuQFp4AWsOQWrUHc1LNMpTzggqwdqU',
  tlsSpkiSha256: 'a1'.repeat(32),
  identityTag: 'b2'.repeat(32),
  manifestJws: 'a.b.c',
  trustBundleUrl: 'https://r.example/trust.json',
  configurationSha256: 'c3'.repeat(32),
  hpkeKeyConfigSha256: '',
}

let chain: SimulatedChain

beforeAll(async () => {
  chain = await syntheticChain()
}, 60_000)

const build = (nonce: string, subject: EnvelopeSubject = SUBJECT) =>
  buildEnvelope(createSimulatedSource(chain, new Uint8Array(48).fill(0x5a)), subject, {
    nonce,
    now: () => NOW,
  })

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

describe('buildEnvelope', () => {
  it.each([
    ['', ''],
    ['', 'cd'.repeat(32)],
    ['d4'.repeat(32), 'cd'.repeat(32)],
  ])(
    'binds TLS key, tag, receipt key, configuration, the HPKE digest %j and the nonce %j into REPORT_DATA',
    async (hpkeKeyConfigSha256, nonce) => {
      const { envelope } = await build(nonce, { ...SUBJECT, hpkeKeyConfigSha256 })
      const zeros = '00'.repeat(32)
      const reportData = fromBase64(envelope.snp_report_b64).subarray(0x50, 0x90)
      const first = sha256(fromHex('a1'.repeat(32) + 'b2'.repeat(32)))
      const second = sha256(
        concatBytes(
          utf8('cmr/report-data/v2'),
          new Uint8Array(1),
          fromBase64Url(SUBJECT.kid),
          fromHex(hpkeKeyConfigSha256 || zeros),
          fromHex('c3'.repeat(32)),
          fromHex(nonce || zeros),
        ),
      )
      expect(toHex(reportData)).toBe(toHex(concatBytes(first, second)))
      expect(envelope.report_data_binding).toEqual({
        label: 'cmr/report-data/v2',
        receipt_key_thumbprint: SUBJECT.kid,
        hpke_key_config_sha256: hpkeKeyConfigSha256,
        configuration_sha256: 'c3'.repeat(32),
        nonce,
      })
    },
  )

  it('has every member of the interface', async () => {
    const { envelope, measurement } = await build('')
    expect(envelopeSchema.parse(envelope)).toMatchObject({
      schema: 'service.attestation/v1',
      workload: 'router',
      vcek_chain_pem: chain.pem,
      tls_spki_sha256: SUBJECT.tlsSpkiSha256,
      workload_identity_tag: SUBJECT.identityTag,
      workload_identity_manifest_jws: 'a.b.c',
      trust_bundle_url: 'https://r.example/trust.json',
      issued_at: '2026-11-20T12:00:00.000Z',
      max_age_seconds: 3600,
    })
    expect(fromBase64(envelope.snp_report_b64)).toHaveLength(1184)
    expect(measurement).toBe('5a'.repeat(48))
  })

  it('brings the revocation list of its chain, and goes without where there is none', async () => {
    const { envelope } = await build('')
    expect(fromBase64(envelope.snp_crl_b64 ?? '')).toEqual(chain.crl)
    const source = createSimulatedSource(chain, new Uint8Array(48))
    const capture = async (data: Bytes) => ({ ...(await source.capture(data)), crl: undefined })
    const without = await buildEnvelope({ capture }, SUBJECT, { nonce: '', now: () => NOW })
    expect(without.json).not.toContain('snp_crl_b64')
  })

  it('takes its digest over the exact text it is served as', async () => {
    const { envelope, json, sha256: digest } = await build('')
    expect(JSON.parse(json)).toEqual(envelope)
    expect(digest).toBe(sha256(utf8(json)).toString('hex'))
  })
})
