import { beforeAll, describe, expect, test } from 'vitest'
import { toBase64 } from '../../../src/protocol/bytes.ts'
import { ISSUED, judgeReceipt, receiptOf } from '../../support/synthetic-receipt.ts'
import { DAY_MS, NOW, revocationList } from '../../support/synthetic-snp.ts'
import {
  envelopeOf,
  inDays,
  makeKey,
  makeWorld,
  signBundle,
  type World,
} from '../../support/synthetic-world.ts'
import { expectOnly, failures } from '../../support/verdicts.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
})

const OTHER = 'c'.repeat(64)

/** A release that is revoked later must not be able to date its receipts back. */
describe('revocation', () => {
  const measurement = '5a'.repeat(48)
  const withdrawn = (value: string, since?: string) =>
    since === undefined ? value : { value, since }

  test('of measurement, tag or key refuses the receipt, whatever its own time', async () => {
    const since = inDays(-0.001)
    const old = ISSUED - 6 * 3600
    const issued_at = new Date((old - 60) * 1000).toISOString()
    const envelope = await envelopeOf(world, { claimed: { issued_at } })
    const router = { evidence_raw: JSON.parse(JSON.stringify(envelope)) }
    const text = await receiptOf(world, { claims: { iat: old }, router })
    const kinds = [
      ['measurement', 'measurements', measurement],
      ['identity tag', 'identity_tags', world.tag],
      ['key', 'keys', world.receiptKey.kid],
    ] as const
    for (const [kind, list, value] of kinds) {
      const revoked = { [list]: [{ value, since }] }
      const bundles = [await signBundle(world, { version: 8, revoked })]
      expectOnly(
        await judgeReceipt(world, text, { trust: { bundles } }),
        'router_attestation.not_revoked',
        `${kind} ${value} is revoked since ${since}`,
      )
      const accepted = { bundles, acceptBeforeRevocation: true }
      const believed = await judgeReceipt(world, text, { trust: accepted })
      expect(failures(believed)).toEqual([])
      expect(believed.notes).toContain(
        `router_attestation: not_revoked: ${kind} ${value} is revoked since ${since}; accepted as made before that`,
      )
    }
  })

  test('that is not considered because of its start is told, that of the key of the manifest too', async () => {
    const since = inDays(-0.001)
    const old = ISSUED - 6 * 3600
    const issued_at = new Date((old - 60) * 1000).toISOString()
    const envelope = await envelopeOf(world, { claimed: { issued_at } })
    const router = { evidence_raw: JSON.parse(JSON.stringify(envelope)) }
    const text = await receiptOf(world, { claims: { iat: old }, router })
    const { kid } = world.manifestKey
    const bundles = [
      await signBundle(world, { version: 8, revoked: { keys: [{ value: kid, since }] } }),
    ]
    const result = await judgeReceipt(world, text, {
      trust: { bundles, acceptBeforeRevocation: true },
    })
    expect(failures(result)).toEqual([])
    expect(result.notes).toContain(
      `router_attestation: manifest_key: key ${kid} is revoked since ${since}; accepted as made before that`,
    )
    const none = await judgeReceipt(world, text, {
      trust: { bundles: [await signBundle(world, { version: 8 })], acceptBeforeRevocation: true },
    })
    expect(none.notes.join()).not.toContain('accepted as made before')
  })

  test('without a time of its own, or from before the receipt, is never accepted', async () => {
    for (const since of [undefined, inDays(-1)]) {
      const revoked = { measurements: [withdrawn(measurement, since)] }
      const bundles = [await signBundle(world, { version: 8, revoked })]
      const trust = { bundles, acceptBeforeRevocation: true }
      const result = await judgeReceipt(world, await receiptOf(world), { trust })
      expectOnly(result, 'router_attestation.not_revoked', `measurement ${measurement} is revoked`)
    }
  })

  test('is not evaded with an old bundle where a newer one was seen and none is given', async () => {
    const lastAccepted = { root: world.root.kid, version: 9, sha256: OTHER }
    const text = await receiptOf(world)
    expectOnly(
      await judgeReceipt(world, text, { trust: { lastAccepted } }),
      'newest_bundle',
      'version 9 was seen before, and only 7 is here',
    )
    const others = [
      { ...lastAccepted, version: 6 },
      { ...lastAccepted, root: OTHER },
    ]
    for (const accepted of others) {
      const result = await judgeReceipt(world, text, { trust: { lastAccepted: accepted } })
      expect(failures(result)).toEqual([])
      expect(result.notes[0]).toMatch(/^not_revoked: no bundle but the receipt's own was at hand/)
    }
  })

  test('of the key that signed the manifest refuses the receipt', async () => {
    const revoked = { keys: [{ value: world.manifestKey.kid, since: inDays(-0.001) }] }
    const bundles = [await signBundle(world, { version: 8, revoked })]
    const result = await judgeReceipt(world, await receiptOf(world), { trust: { bundles } })
    expectOnly(
      result,
      'router_attestation.manifest_key',
      `key ${world.manifestKey.kid} is revoked since`,
    )
  })

  test('is read from the newest of several bundles, an expired one included', async () => {
    const revoked = { measurements: [measurement] }
    const newest = await signBundle(world, { version: 9, revoked, expires_at: inDays(-0.5) })
    const older = await signBundle(world, { version: 6 })
    const bundles = [await signBundle(world, { version: 8 }), newest, older]
    const result = await judgeReceipt(world, await receiptOf(world), { trust: { bundles } })
    expectOnly(result, 'router_attestation.not_revoked', `measurement ${measurement} is revoked`)
    expect(result.notes[0]).toMatch(/^newest_bundle: version 9 expired at /)
    expect(result.accepted).toMatchObject({ version: 9, jws: newest })
  })

  test('is not hidden by a fork: two bundles of one version are refused, also where one is in the receipt', async () => {
    const text = await receiptOf(world)
    const seventh = await signBundle(world, { revoked: { measurements: [measurement] } })
    const eighth = await signBundle(world, { version: 8 })
    const ninth = await signBundle(world, { version: 9 })
    const seen = (version: number) => ({ root: world.root.kid, version, sha256: OTHER })
    const other = (version: number) => signBundle(world, { version, expires_at: inDays(2) })
    const cases = [
      [{ bundles: [eighth, await other(7)] }, 7],
      [{ bundles: [seventh, eighth] }, 7],
      [{ bundles: [eighth], lastAccepted: seen(7) }, 7],
      [{ lastAccepted: seen(7) }, 7],
      [{ bundles: [ninth, eighth, await other(8)] }, 8],
      [{ bundles: [ninth, eighth], lastAccepted: seen(8) }, 8],
    ] as const
    for (const [trust, version] of cases) {
      const result = await judgeReceipt(world, text, { trust })
      const fault = `there are two different bundles of version ${version}`
      expectOnly(result, 'newest_bundle', fault)
      expect(result.accepted).toBeUndefined()
    }
    const own = await signBundle(world)
    const router = { trust_bundle_jws: own }
    const held = await judgeReceipt(world, await receiptOf(world, { router }), {
      trust: { bundles: [own, eighth, own], lastAccepted: { ...seen(7), root: OTHER } },
    })
    expect(failures(held)).toEqual([])
    expect(held.accepted).toMatchObject({ version: 8, jws: eighth })
  })

  test('a bundle that cannot be the newest is refused', async () => {
    const text = await receiptOf(world)
    const later = { root: world.root.kid, version: 9, sha256: OTHER }
    const bundle = await signBundle(world, { version: 8 })
    const cases = [
      [{ bundles: [bundle], lastAccepted: later }, 'version 9 was seen before, and only 8 is here'],
      [
        { bundles: [bundle, await signBundle(world, { version: 8, expires_at: inDays(2) })] },
        'there are two different bundles of version 8',
      ],
      [
        { bundles: [await signBundle(world, {}, await makeKey())] },
        /^trust_bundle_header: kid is .* instead of/,
      ],
      [{ bundles: ['{}'] }, 'malformed trust bundle: a compact JWS has three segments'],
      [
        { bundles: [await signBundle(world, { version: 8, environment: 'staging' })] },
        'trust_bundle_environment: made for staging, not for production',
      ],
    ] as const
    for (const [trust, fault] of cases) {
      expectOnly(await judgeReceipt(world, text, { trust }), 'newest_bundle', fault)
    }
  })
})

describe("AMD's revocation list", () => {
  test('fails a receipt whose authority it names, whenever the receipt was issued', async () => {
    const text = await receiptOf(world)
    const crl = await revocationList([0x10001])
    expectOnly(
      await judgeReceipt(world, text, { crl }),
      'router_attestation.revocation',
      'the ASK is revoked',
    )
  })

  test('is taken from the envelope as of its day, and from the caller as of today', async () => {
    const snp_crl_b64 = toBase64(await revocationList([], { days: 1 }))
    const envelope = { ...(await envelopeOf(world)), snp_crl_b64 }
    const router = { evidence_raw: JSON.parse(JSON.stringify(envelope)) }
    const text = await receiptOf(world, { router })
    const now = NOW + 365 * DAY_MS
    expect(failures(await judgeReceipt(world, text, { now, requireCrl: true }))).toEqual([])
    const crl = await revocationList([], { days: 1 })
    expectOnly(
      await judgeReceipt(world, text, { now, crl }),
      'router_attestation.revocation',
      'the revocation list is out of date',
    )
  })

  test('fails where it is required and missing', async () => {
    expectOnly(
      await judgeReceipt(world, await receiptOf(world), { requireCrl: true }),
      'router_attestation.revocation',
      "AMD's revocation list is missing",
    )
  })
})
