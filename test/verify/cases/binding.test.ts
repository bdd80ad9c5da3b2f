import { beforeAll, describe, expect, test } from 'vitest'
import { concatBytes, fromHex, utf8 } from '../../../src/protocol/bytes.ts'
import { sha256, sha256Hex } from '../../../src/protocol/digest.ts'
import { readEnvelope, verifyEnvelopeHardware } from '../../../src/verify/envelope-hardware.ts'
import { verifyEnvelope, type LiveExpectations } from '../../../src/verify/envelope.ts'
import { REPORT_LAYOUT } from '../../../src/verify/snp/report-layout.ts'
import { verifySnp } from '../../../src/verify/snp/verify-snp.ts'
import { NOW, syntheticChain, syntheticReport } from '../../support/synthetic-snp.ts'
import {
  acceptBundle,
  envelopeOf,
  inDays,
  judgeEnvelope,
  makeWorld,
  manifest,
  manifestHeader,
  signJws,
  WORKLOAD,
  type World,
} from '../../support/synthetic-world.ts'
import { expectMalformed, expectOnly, failures } from '../../support/verdicts.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
})

const ENVELOPE = 'attestation envelope'
const OTHER = 'c'.repeat(64)

test('the envelope that every case starts from holds, live connection and nonce included', async () => {
  const nonce = 'a'.repeat(64)
  const binding = {
    label: 'cmr/report-data/v1',
    receipt_key_thumbprint: world.receiptKey.kid,
    nonce,
  } as const
  const live = { nonce, tlsSpkiSha256: world.spki }
  const claimed = { report_data_binding: binding }
  expect(failures(await judgeEnvelope(world, { claimed }, { live }))).toEqual([])
})

test('HOST_DATA that the bundle does not name is refused, also where it names none', async () => {
  const fields = { hostData: fromHex(OTHER) }
  const refused = await judgeEnvelope(world, { fields })
  expectOnly(refused, 'measurement_allowed', `host data ${OTHER} is not allowed`)
  const { allowed_measurements: entries } = await acceptBundle(world)
  const named = { allowed_measurements: entries.map((entry) => ({ ...entry, host_data: OTHER })) }
  expect(failures(await judgeEnvelope(world, { fields }, { bundle: named }))).toEqual([])
  expectOnly(
    await judgeEnvelope(world, {}, { bundle: named }),
    'measurement_allowed',
    `host data ${'0'.repeat(64)} is not allowed`,
  )
})

test('an envelope says on what it rests that it is of the present', async () => {
  const envelope = await envelopeOf(world)
  const trust = { bundle: await acceptBundle(world), rootJwk: world.root.jwk }
  const anchors = [{ product: world.chain.product, spkiSha256: world.chain.arkSpkiSha256 }]
  const judge = (live: LiveExpectations | 'past', now = NOW) =>
    verifyEnvelope(envelope, { now, anchors, trust, live })
  const years = 3 * 365 * 86_400_000
  expect((await judge('past')).freshness).toBe('not_judged')
  expect((await judge({ nonce: null })).freshness).toBe('operators_clock')
  expect((await judge({ nonce: 'a'.repeat(64) })).freshness).toBe('nonce')
  const late = (await judge('past', NOW + years)).checks.map(({ name }) => name)
  expect(late).not.toContain('freshness')
})

describe('binding', () => {
  test('a changed measurement, host data or report data breaks the signature', async () => {
    const chain = await syntheticChain()
    const anchors = [{ product: 'genoa', spkiSha256: chain.arkSpkiSha256 }] as const
    const report = await syntheticReport(chain)
    for (const field of ['measurement', 'hostData', 'reportData'] as const) {
      const [offset] = REPORT_LAYOUT[field]
      const result = await verifySnp(report.with(offset, 0x11), chain.pem, { now: NOW, anchors })
      expectOnly(result, 'report_signature', 'the signature does not verify')
    }
  })

  test('REPORT_DATA over anything but the decoded digests fails', async () => {
    const spki = utf8(world.spki)
    const tag = utf8(world.tag)
    const { reportData: good } = (await judgeEnvelope(world)).report ?? {}
    const tail = good?.slice(32) ?? new Uint8Array(32)
    for (const head of [await sha256(concatBytes(spki, tag)), new Uint8Array(32)]) {
      const fields = { reportData: concatBytes(head, tail) }
      const result = await judgeEnvelope(world, { fields })
      expectOnly(
        result,
        'report_data',
        'bytes 0..31 are not the digest of TLS key and identity tag',
      )
    }
    const head = good?.slice(0, 32) ?? new Uint8Array(32)
    const unbound = await judgeEnvelope(world, {
      fields: { reportData: concatBytes(head, new Uint8Array(32)) },
    })
    expectOnly(unbound, 'report_data_binding', 'bytes 32..63 are not the digest of the binding')
  })

  test('another configuration or HPKE key than the report was made for fails', async () => {
    const binding = {
      label: 'cmr/report-data/v2',
      receipt_key_thumbprint: world.receiptKey.kid,
      hpke_key_config_sha256: '',
      configuration_sha256: 'd'.repeat(64),
      nonce: '',
    } as const
    const claimed = { report_data_binding: binding }
    expect(failures(await judgeEnvelope(world, { claimed }))).toEqual([])
    for (const change of [{ configuration_sha256: OTHER }, { hpke_key_config_sha256: OTHER }]) {
      const swapped = { report_data_binding: { ...binding, ...change } }
      expectOnly(
        await judgeEnvelope(world, { claimed, swapped }),
        'report_data_binding',
        'bytes 32..63 are not the digest of the binding',
      )
    }
  })

  test('another live key fails, and a digest of the wrong spelling is malformed', async () => {
    for (const tlsSpkiSha256 of [OTHER, await sha256Hex('the whole certificate')]) {
      const result = await judgeEnvelope(world, {}, { live: { tlsSpkiSha256 } })
      expectOnly(result, 'tls_key', `the connection has the key ${tlsSpkiSha256}`)
    }
    const envelope = await envelopeOf(world)
    for (const digest of [OTHER.toUpperCase(), OTHER.slice(1), `${OTHER}c`, ` ${OTHER}`, '']) {
      const text = JSON.stringify({ ...envelope, tls_spki_sha256: digest })
      const attempt = () => readEnvelope(text)
      await expectMalformed(attempt, ENVELOPE, 'tls_spki_sha256: not 64 lowercase hex digits')
    }
    const swapped = await judgeEnvelope(world, { swapped: { tls_spki_sha256: OTHER } })
    expectOnly(swapped, 'report_data', 'bytes 0..31')
  })

  test('a tag that is not of the very text of the manifest fails', async () => {
    const signedAgain = await signJws(
      manifestHeader(world.manifestKey),
      manifest(),
      world.manifestKey,
    )
    const swapped = { workload_identity_manifest_jws: signedAgain }
    const again = await judgeEnvelope(world, { swapped })
    expectOnly(
      again,
      'workload_identity_tag',
      `the manifest's tag is ${await sha256Hex(signedAgain)}`,
    )
    const tag = await sha256Hex(`${world.manifestJws}\n`)
    const bundle = { allowed_identity_tags: [tag], allowed_measurements: [allow({ tag })] }
    const newline = await judgeEnvelope(
      world,
      { claimed: { workload_identity_tag: tag } },
      { bundle },
    )
    expectOnly(newline, 'workload_identity_tag', `the manifest's tag is ${world.tag}`)
  })

  test('a measurement that is not in the bundle fails, and a revoked one although it is', async () => {
    const measurement = new Uint8Array(48).fill(0x77)
    const unknown = await judgeEnvelope(world, { fields: { measurement } })
    expectOnly(unknown, 'measurement_allowed', /^measurement (77){48} is not in the bundle$/)
    const revoked = { measurements: ['5a'.repeat(48)] }
    expectOnly(
      await judgeEnvelope(world, {}, { bundle: { revoked } }),
      'not_revoked',
      /^measurement (5a){48} is revoked$/,
    )
    const tags = { identity_tags: [world.tag] }
    expectOnly(
      await judgeEnvelope(world, {}, { bundle: { revoked: tags } }),
      'not_revoked',
      `identity tag ${world.tag} is revoked`,
    )
    const ended = { allowed_measurements: [{ ...allow({}), not_after: inDays(-0.1) }] }
    expectOnly(
      await judgeEnvelope(world, {}, { bundle: ended }),
      'measurement_allowed',
      'the entry for this measurement has ended',
    )
    const host = { allowed_measurements: [{ ...allow({}), host_data: OTHER }] }
    expectOnly(
      await judgeEnvelope(world, {}, { bundle: host }),
      'measurement_allowed',
      'is not allowed',
    )
    const unlisted = { allowed_identity_tags: [OTHER] }
    expectOnly(
      await judgeEnvelope(world, {}, { bundle: unlisted }),
      'measurement_allowed',
      `identity tag ${world.tag} is not in the bundle`,
    )
  })

  test('a measurement allowed for another workload or release fails', async () => {
    const pairs = [allow({ tag: OTHER }), allow({ workload: 'gateway' })]
    for (const entry of pairs) {
      const other = { ...allow({}), measurement: '00'.repeat(48) }
      const bundle = { allowed_measurements: [entry, other] }
      const result = await judgeEnvelope(world, {}, { bundle })
      expectOnly(
        result,
        'measurement_allowed',
        'the measurement is allowed, but not for this workload and release',
      )
    }
  })

  test('a measurement of zeros fails even where it is allowed', async () => {
    const bundle = { allowed_measurements: [{ ...allow({}), measurement: '00'.repeat(48) }] }
    const fields = { measurement: new Uint8Array(48) }
    const result = await judgeEnvelope(world, { fields }, { bundle })
    expectOnly(result, 'measurement_present', 'the measurement is all zero')
  })
})

describe('freshness and form', () => {
  test('an envelope too old or of the future fails, and a time of another form is malformed', async () => {
    const age = 3_600_000 + 120_000
    const old = { claimed: { issued_at: new Date(NOW - age - 1).toISOString() } }
    expectOnly(await judgeEnvelope(world, old), 'freshness', 'more than 3600 s ago')
    const edge = { claimed: { issued_at: new Date(NOW - age).toISOString() } }
    expect(failures(await judgeEnvelope(world, edge))).toEqual([])
    const short = await judgeEnvelope(world, edge, { live: { maxAgeSeconds: 600 } })
    expectOnly(short, 'freshness', 'more than 600 s ago')
    const future = { claimed: { issued_at: new Date(NOW + 121_000).toISOString() } }
    expectOnly(await judgeEnvelope(world, future), 'freshness', 'issued in the future')
    const envelope = await envelopeOf(world)
    for (const time of [
      '2026-11-20T12:00:00+00:00',
      '2026-11-20 12:00:00Z',
      '2026-02-30T12:00:00Z',
      '1795176000',
      '2026-11-20T12:00Z',
    ]) {
      const attempt = () => readEnvelope(JSON.stringify({ ...envelope, issued_at: time }))
      await expectMalformed(attempt, ENVELOPE, /^issued_at: (not an RFC 3339 time|no such time)/)
    }
  })

  test('a maximum age that is negative, huge or no integer is malformed', async () => {
    const envelope = await envelopeOf(world)
    for (const seconds of [-1, 0, 604_801, 1e15, 1.5, '3600', null]) {
      const attempt = () => readEnvelope(JSON.stringify({ ...envelope, max_age_seconds: seconds }))
      await expectMalformed(attempt, ENVELOPE, /^max_age_seconds: /)
    }
  })

  test('an envelope without certificates fails', async () => {
    const result = await judgeEnvelope(world, { swapped: { vcek_chain_pem: '' } })
    expectOnly(result, 'vcek_chain', 'vcek_chain_pem is empty')
  })

  test('another schema is malformed', async () => {
    const envelope = await envelopeOf(world)
    for (const schema of ['service.attestation/v2', 'service.attestation', '', undefined]) {
      const attempt = () => readEnvelope(JSON.stringify({ ...envelope, schema }))
      await expectMalformed(attempt, ENVELOPE, /^schema: /)
    }
  })

  test('a report that was made for a former TLS key fails', async () => {
    const former = { claimed: { tls_spki_sha256: OTHER } }
    const result = await judgeEnvelope(world, former, { live: { tlsSpkiSha256: world.spki } })
    expectOnly(result, 'tls_key', `the connection has the key ${world.spki}`)
  })

  test('64 zeros are no nonce, for a report without one binds the same', async () => {
    const zeros = '0'.repeat(64)
    const binding = {
      label: 'cmr/report-data/v1',
      receipt_key_thumbprint: world.receiptKey.kid,
      nonce: '',
    } as const
    const claimed = { report_data_binding: binding }
    const swapped = { report_data_binding: { ...binding, nonce: zeros } }
    const result = await judgeEnvelope(world, { claimed, swapped }, { live: { nonce: zeros } })
    expectOnly(result, 'nonce', 'no nonce was asked for')
  })

  test('a report that was made for no nonce or another one fails', async () => {
    const live = { nonce: OTHER }
    const result = await judgeEnvelope(world, {}, { live })
    expectOnly(result, 'nonce', 'the report was not made for this nonce')
  })

  test('a report in base64 that is not canonical is malformed', async () => {
    const envelope = await envelopeOf(world)
    for (const text of [
      `${envelope.snp_report_b64}\n`,
      envelope.snp_report_b64.replace(/=*$/, ''),
    ]) {
      const attempt = () =>
        verifyEnvelopeHardware({ ...envelope, snp_report_b64: text }, { now: NOW })
      await expectMalformed(attempt, ENVELOPE, 'snp_report_b64: not standard base64')
    }
  })
})

function allow({ tag = world.tag, workload = WORKLOAD }: { tag?: string; workload?: string }) {
  return { measurement: '5a'.repeat(48), workload, workload_identity_tag: tag }
}
