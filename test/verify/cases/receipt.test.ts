import { beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import type { AttestationBlock, ReceiptClaims } from '../../../src/protocol/receipt.ts'
import { receiptHeadline } from '../../../src/verify/headline.ts'
import { issueSimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { NOW, syntheticAuthority } from '../../support/synthetic-snp.ts'
import {
  anchorsOf,
  evidence,
  hopOf,
  providerHopOf,
  ISSUED,
  judgeOf,
  judgeReceipt,
  receiptOf,
  RECEIPT_ID,
} from '../../support/synthetic-receipt.ts'
import {
  envelopeOf,
  makeKey,
  makeWorld,
  signBundle,
  type World,
} from '../../support/synthetic-world.ts'
import { expectMalformed, expectOnly, failures } from '../../support/verdicts.ts'

const CONFIGURATION = 'cf'.repeat(32)
const OTHER_CONFIGURATION = 'c0'.repeat(32)

let world: World
let other: World
beforeAll(async () => {
  ;[world, other] = await Promise.all([makeWorld(), makeWorld()])
})

const OTHER = 'c'.repeat(64)

test('the receipt that every case starts from holds, with evidence inside or by digest', async () => {
  const expected = {
    id: RECEIPT_ID,
    requestedRoute: 'glm-5',
    routedModel: 'eu/nova/glm-5',
    clientRequestSha256: await sha256Hex('client request'),
    clientResponseSha256: await sha256Hex('client response'),
    providerRequestSha256: await sha256Hex('provider request'),
    providerResponseSha256: await sha256Hex('provider response'),
  }
  for (const byReference of [false, true]) {
    const result = await judgeReceipt(world, await receiptOf(world, { byReference }), { expected })
    expect(failures(result)).toEqual([])
    expect(result.outcome).toBe('valid')
    expect(result.notes).toEqual([
      expect.stringMatching(/^not_revoked: no bundle but the receipt's own was at hand/),
      expect.stringMatching(
        /^router_attestation: revocation: AMD's revocation list was not checked/,
      ),
      'provider_attestation: the provider was not attested (no block)',
    ])
  }
})

describe('receipt', () => {
  test('another id, route or digest than the expected one fails', async () => {
    const text = await receiptOf(world)
    const expectations = {
      id: ['receipt_id', '4be0643f-1d98-473b-97cd-ca98a65347dd'],
      requestedRoute: ['requested_route', 'glm-6'],
      routedModel: ['routed_model', 'us/nova/glm-5'],
      clientRequestSha256: ['client_request_digest', OTHER],
      clientResponseSha256: ['client_response_digest', OTHER],
      providerRequestSha256: ['request_digest', OTHER],
      providerResponseSha256: ['response_digest', OTHER],
    } as const
    for (const [member, [name, wanted]] of Object.entries(expectations)) {
      const result = await judgeReceipt(world, text, { expected: { [member]: wanted } })
      expectOnly(result, name, new RegExp(`^the receipt says .*, not ${wanted}$`))
    }
  })

  test('a time outside the life of the key fails', async () => {
    const { jwk, kid } = world.receiptKey
    const late = await receiptOf(world, { claims: { iat: NOW / 1000 + 121 } })
    expectOnly(await judgeReceipt(world, late), 'receipt_time', 'issued in the future')
    const early = await receiptOf(world, { claims: { iat: ISSUED - 151 } })
    expectOnly(
      await judgeReceipt(world, early),
      'receipt_time',
      'issued before the evidence of its key',
    )
    const text = await receiptOf(world)
    const outOfUse = { jwks: { keys: [{ ...jwk, kid, exp: ISSUED - 1 }] } }
    expectOnly(
      await judgeReceipt(world, text, outOfUse),
      'receipt_time',
      'issued after its key was out of use',
    )
    const notYet = { jwks: { keys: [{ ...jwk, kid, nbf: ISSUED + 1 }] } }
    expectOnly(
      await judgeReceipt(world, text, notYet),
      'receipt_time',
      'issued before its key was in use',
    )
  })

  test('a hop that speaks of another instance than its evidence fails', async () => {
    const block = await providerHopOf(other)
    const options = { judgeProviderHop: judgeOf(other) }
    for (const [change, member] of [
      [{ measurement: '11'.repeat(48) }, 'measurement'],
      [{ workload_identity_tag: world.tag }, 'workload_identity_tag'],
      [{ workload_identity_manifest_jws: world.manifestJws }, 'workload_identity_manifest_jws'],
      [{ tee: 'tdx' }, 'tee'],
    ] as const) {
      const text = await receiptOf(world, {
        claims: { inference_attestation: { ...block, ...change } },
      })
      expect(failures(await judgeReceipt(world, text, options))).toEqual([
        `inference_attestation.hop_consistent: ${member} differ`,
        'provider_attested: it does not hold under the given policy',
      ])
    }
    const good = await receiptOf(world, { claims: { inference_attestation: block } })
    expect(failures(await judgeReceipt(world, good, options))).toEqual([])
    const old = await receiptOf(world, { claims: { provider_attestation: block } })
    const older = await judgeReceipt(world, old, options)
    expect(failures(older), 'older receipts say provider_attestation').toEqual([])
    expect(older.checks.map(({ name }) => name)).toContain('provider_attestation.provider_policy')
  })

  test('evidence of a router that vouches for another receipt key fails', async () => {
    const key = await makeKey()
    const binding = {
      label: 'cmr/report-data/v1',
      receipt_key_thumbprint: key.kid,
      nonce: '',
    } as const
    const envelope = await envelopeOf(world, { claimed: { report_data_binding: binding } })
    const router = { evidence_raw: JSON.parse(JSON.stringify(envelope)) }
    const result = await judgeReceipt(world, await receiptOf(world, { router }))
    expectOnly(result, 'receipt_key', `the evidence vouches for ${key.kid}`)
  })

  test('a receipt of another configuration than its evidence binds fails', async () => {
    for (const [claimed, bound, named] of [
      [OTHER_CONFIGURATION, CONFIGURATION, CONFIGURATION],
      [undefined, CONFIGURATION, CONFIGURATION],
      [OTHER_CONFIGURATION, undefined, 'no configuration'],
    ] as const) {
      const result = await judgeReceipt(world, await receiptUnder(claimed, bound))
      expectOnly(result, 'configuration', `the evidence vouches for ${named}`)
    }
  })

  test('a receipt of the configuration that the evidence binds holds, and says which', async () => {
    const result = await judgeReceipt(world, await receiptUnder(CONFIGURATION, CONFIGURATION))
    expect(failures(result)).toEqual([])
    expect(result.checks.find(({ name }) => name === 'configuration')?.detail).toBe(CONFIGURATION)
  })

  async function receiptUnder(claimed: string | undefined, bound: string | undefined) {
    const key = { receipt_key_thumbprint: world.receiptKey.kid, nonce: '' }
    const binding =
      bound === undefined
        ? ({ label: 'cmr/report-data/v1', ...key } as const)
        : ({
            label: 'cmr/report-data/v2',
            ...key,
            hpke_key_config_sha256: '',
            configuration_sha256: bound,
          } as const)
    const envelope = await envelopeOf(world, { claimed: { report_data_binding: binding } })
    const router = { evidence_raw: JSON.parse(JSON.stringify(envelope)) }
    return receiptOf(world, { router, claims: { configuration_sha256: claimed } })
  }

  test('what was required of the provider is checked against what the receipt says of it', async () => {
    const block = await hopOf(other, true)
    const digest = String(Object(block.evidence_raw)['sha256'])
    const judged = async (
      held: ReceiptClaims['constraints'],
      asked?: ReceiptClaims['constraints'],
      change: Partial<AttestationBlock> = {},
    ) => {
      const claims = { constraints: held, inference_attestation: { ...block, ...change } }
      const expected = { constraints: asked }
      return judgeReceipt(world, await receiptOf(world, { claims }), { expected })
    }
    const all = { min: 'hardware', providers: ['nova', 'vega'], evidence_sha256: [digest] } as const
    const held = { ...all, providers: [...all.providers], evidence_sha256: [digest] }
    const good = await judged(held, { min: 'simulated', providers: ['nova', 'vega', 'orbit'] })
    expect(failures(good)).toEqual([])
    expect(good.checks.find(({ name }) => name === 'constraints')?.detail).toBe(
      `min=hardware; providers=nova,vega; evidence_sha256=${digest}`,
    )
    const unmet = (name: string) => `the provider does not meet \`${name}\``
    const weak = { attestation_strength: 'hardware-os-unpinned' }
    expectOnly(await judged({ min: 'hardware' }, undefined, weak), 'constraints', unmet('min'))
    expectOnly(await judged({ providers: ['vega'] }), 'constraints', unmet('providers'))
    expectOnly(await judged({ evidence_sha256: [OTHER] }), 'constraints', unmet('evidence_sha256'))
    // A summary that names other evidence than the hop holds proves neither.
    const twofold = { evidence_summary: { evidence_sha256: OTHER } }
    expectOnly(
      await judged({ evidence_sha256: [OTHER] }, undefined, twofold),
      'constraints',
      unmet('evidence_sha256'),
    )
    expectOnly(
      await judged(undefined, { min: 'none' }),
      'constraints',
      'the receipt says that nothing was required',
    )
    expectOnly(
      await judged({ min: 'simulated' }, { min: 'hardware' }),
      'constraints',
      'the receipt says that less was required: min=simulated',
    )
    const unasked = await judged(undefined)
    expect(unasked.checks.map(({ name }) => name)).not.toContain('constraints')
  })

  test('a key context that names another key fails', async () => {
    const { kid } = await makeKey()
    const receipt_signature = {
      kid,
      alg: 'ES256',
      verified: true,
      verification_mode: 'snp-envelope',
      verified_at: ISSUED,
    } as const
    const text = await receiptOf(world, { claims: { receipt_signature } })
    const names = failures(await judgeReceipt(world, text)).map((line) => line.split(':')[0])
    expect(names).toEqual(['receipt_key_context', 'receipt_key'])
  })

  test('a changed receipt does not verify, and is not read', async () => {
    const [header, , signature] = (await receiptOf(world)).split('.')
    const result = await judgeReceipt(world, `${header}.AAAA.${signature}`)
    expectOnly(result, 'receipt_signature', 'the signature does not verify')
    expect(result.notes).toEqual(['not checked further: the receipt is not signed by a known key'])
    expect(result.claims).toBeUndefined()
  })

  test('claims of another form under a good signature are malformed', async () => {
    const text = await receiptOf(world, { claims: { request_digest: 'AB' } })
    await expectMalformed(() => judgeReceipt(world, text), 'receipt', /^request_digest: /)
    for (const iat of [-1, 253_402_300_800, Number.MAX_SAFE_INTEGER]) {
      const timeless = await receiptOf(world, { claims: { iat } })
      await expectMalformed(() => judgeReceipt(world, timeless), 'receipt', /^iat: /)
    }
  })
})

describe('hops', () => {
  test('a router hop that had not verified fails', async () => {
    const text = await receiptOf(world, { router: { verified: false } })
    expectOnly(
      await judgeReceipt(world, text),
      'router_attestation.hop_verified',
      'it had not verified when the receipt was signed',
    )
  })

  test('changed evidence fails', async () => {
    const text = await receiptOf(world, { byReference: true })
    const changed = new Map([...evidence].map(([sha256, bytes]) => [sha256, bytes.with(9, 0)]))
    expect(failures(await judgeReceipt(world, text, { evidence: changed }))).toEqual([
      'router_attestation.hop_evidence: not the bytes that were signed',
      'receipt_key: the evidence vouches for no receipt key',
    ])
  })

  test('a bundle that was not in force when the receipt was signed fails', async () => {
    const later = new Date(NOW + 86_400_000).toISOString()
    const trust_bundle_jws = await signBundle(world, { not_before: later })
    const result = await judgeReceipt(
      world,
      await receiptOf(world, { router: { trust_bundle_jws } }),
    )
    expectOnly(result, 'router_attestation.trust_bundle_dates', `not in force before ${later}`)
  })

  test('a receipt stays valid when bundle, envelope and certificates have long expired', async () => {
    const years = 10 * 365 * 86_400_000
    const result = await judgeReceipt(world, await receiptOf(world), { now: NOW + years })
    expect(failures(result)).toEqual([])
  })

  test('a simulated platform fails by that name unless it is allowed', async () => {
    const chain = await issueSimulatedChain(await syntheticAuthority(), NOW)
    const simulated = { ...world, chain }
    const text = await receiptOf(simulated)
    const options = { anchors: anchorsOf(world) }
    expectOnly(
      await judgeReceipt(world, text, options),
      'router_attestation.simulated_platform',
      'a simulated platform, and its root',
    )
    for (const allowed of ['any', { arkSpkiSha256: chain.arkSpkiSha256 }] as const) {
      const result = await judgeReceipt(world, text, { ...options, simulated: allowed })
      expect(failures(result)).toEqual([])
      expect(receiptHeadline(result)).toMatch(
        /^VALID ON A SIMULATED PLATFORM, which proves nothing about any machine: /,
      )
    }
    const wrong = await judgeReceipt(world, text, {
      ...options,
      simulated: { arkSpkiSha256: OTHER },
    })
    expectOnly(wrong, 'router_attestation.simulated_platform', 'is not allowed')
  })
})
