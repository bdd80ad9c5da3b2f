import { beforeAll, describe, expect, it } from 'vitest'
import { fromHex, toBase64, toHex } from '../../../src/protocol/bytes.ts'
import { providerPolicySchema } from '../../../src/protocol/provider-policy.ts'
import type { TrustBundleInput } from '../../../src/protocol/trust-bundle.ts'
import { judgeEnvelope, type JudgedEnvelope } from '../../../src/verify/providers/envelope.ts'
import { MEASUREMENT, NOW, revocationList } from '../../support/synthetic-snp.ts'
import {
  envelopeOf,
  makeWorld,
  signBundle,
  WORKLOAD,
  type EnvelopeChanges,
  type World,
} from '../../support/synthetic-world.ts'

const NONCE = 'a1'.repeat(32)
const HOST_DATA = 'c4'.repeat(32)

let world: World
let crl: string

beforeAll(async () => {
  world = await makeWorld()
  crl = toBase64(await revocationList([]))
}, 60_000)

interface Change {
  readonly envelope?: EnvelopeChanges
  readonly bundle?: () => Partial<TrustBundleInput>
  readonly policy?: Record<string, unknown>
  /** Left away where it is null. */
  readonly list?: string | null
}

/** A host on a platform whose root stands in for AMD's, asked with our nonce. */
async function judge({ envelope, bundle, policy, list }: Change = {}): Promise<JudgedEnvelope> {
  const served = await envelopeOf(world, {
    ...envelope,
    claimed: {
      report_data_binding: {
        label: 'cmr/report-data/v1',
        receipt_key_thumbprint: world.receiptKey.kid,
        nonce: NONCE,
      },
    },
  })
  const parsed = providerPolicySchema.parse({
    adapter: 'envelope',
    root_key: { ...world.root.jwk },
    ...policy,
  })
  if (parsed.adapter !== 'envelope') throw new Error('another adapter')
  return judgeEnvelope(
    {
      envelope: JSON.stringify(list === null ? served : { ...served, snp_crl_b64: list ?? crl }),
      trust_bundle_jws: await signBundle(world, bundle?.()),
      nonce: NONCE,
      tls_spki_sha256: world.spki,
    },
    parsed,
    {
      now: NOW,
      simulated: 'refuse',
      anchors: [{ product: 'genoa', spkiSha256: world.chain.arkSpkiSha256 }],
    },
  )
}

const withHostData = { fields: { hostData: fromHex(HOST_DATA) } }

/** The bundle's entry for this guest, for one value of HOST_DATA. */
const entryFor = (hostData: string) => () => ({
  allowed_measurements: [
    {
      measurement: toHex(MEASUREMENT),
      workload: WORKLOAD,
      workload_identity_tag: world.tag,
      host_data: hostData,
    },
  ],
})

describe('a host with an attestation envelope', () => {
  it.each<[string, Change]>([
    ['as its release root allows it', {}],
    [
      'with HOST_DATA that its release root names',
      { envelope: withHostData, bundle: entryFor(HOST_DATA) },
    ],
    [
      'with HOST_DATA that the policy names',
      { envelope: withHostData, policy: { allowed_host_data: [HOST_DATA] } },
    ],
  ])('is accepted %s', async (_what, change) => {
    expect(await judge(change)).toMatchObject({
      verification_mode: 'snp-envelope',
      attestation_strength: 'hardware',
      evidence_summary: { nonce_bound: true },
      checks: expect.arrayContaining(['trust_bundle_signature', 'nonce', 'tls_key', 'host_data']),
    })
  })

  it.each<[string, Change, string, string]>([
    ["without AMD's revocation list", { list: null }, 'hardware', 'revocation'],
    ['with a revocation list that is none', { list: 'AAAA' }, 'hardware', 'revocation'],
    [
      'with HOST_DATA that nobody pinned',
      { envelope: withHostData },
      'measurement',
      'measurement_allowed',
    ],
    [
      'without the HOST_DATA that the policy pins',
      { policy: { allowed_host_data: [HOST_DATA] } },
      'launch_binding',
      'host_data',
    ],
    [
      'with memory behind CXL, unless its bundle allows that',
      { envelope: { fields: { policy: 0x230000 } } },
      'hardware',
      'cxl',
    ],
  ])('is refused %s', async (_what, change, code, check) => {
    await expect(judge(change)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(`(${check})`),
    })
  })

  it('may use memory behind CXL where its bundle allows that', async () => {
    const allowed = () => ({ snp_policy: { allow_cxl: true } })
    const change = { envelope: { fields: { policy: 0x230000 } }, bundle: allowed }
    expect(await judge(change)).toMatchObject({ attestation_strength: 'hardware' })
  })

  it('whose authority AMD has revoked is refused', async () => {
    const revoking = toBase64(await revocationList([0x10001]))
    await expect(judge({ list: revoking })).rejects.toMatchObject({
      code: 'hardware',
      message: 'the hardware evidence does not hold (revocation)',
    })
  })
})
