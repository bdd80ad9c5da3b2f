import { beforeAll, describe, expect, it } from 'vitest'
import { sealEvidence } from '../../../src/enclave/adapters/verified-evidence.ts'
import { describeInferenceHop } from '../../../src/enclave/proofs/inference-hop.ts'
import { toBase64, type Bytes } from '../../../src/protocol/bytes.ts'
import type { Envelope } from '../../../src/protocol/envelope.ts'
import { providerPolicySchema } from '../../../src/protocol/provider-policy.ts'
import type { AttestationBlock } from '../../../src/protocol/receipt.ts'
import { judgeEnvelope } from '../../../src/verify/providers/envelope.ts'
import { EXCHANGE, failuresOf, rejudgeHop } from '../../support/rejudge.ts'
import { anchorsOf } from '../../support/synthetic-receipt.ts'
import { MEASUREMENT, NOW, revocationList } from '../../support/synthetic-snp.ts'
import {
  acceptBundle,
  envelopeOf,
  makeWorld,
  signBundle,
  type World,
} from '../../support/synthetic-world.ts'

const NONCE = 'a1'.repeat(32)
const ZEROS = '00'.repeat(32)

let world: World
let envelope: Envelope
let block: AttestationBlock

/** What a router stored and signed of a provider that publishes envelopes. */
beforeAll(async () => {
  world = await makeWorld()
  envelope = await provingEnvelope(NONCE)
  const evidence = {
    envelope: JSON.stringify(envelope),
    trust_bundle_jws: await signBundle(world),
    nonce: NONCE,
    tls_spki_sha256: world.spki,
  }
  const policy = providerPolicySchema.parse(policyOf())
  if (policy.adapter !== 'envelope') throw new Error('another adapter')
  const judged = await judgeEnvelope(evidence, policy, {
    now: NOW,
    simulated: 'refuse',
    anchors: anchorsOf(world),
  })
  const sealed = await sealEvidence(judged, evidence.envelope, { now: NOW, maxAgeSeconds: 3600 })
  block = describeInferenceHop(sealed).block
}, 60_000)

const policyOf = () => ({ adapter: 'envelope', root_key: world.root.jwk })

async function provingEnvelope(nonce: string): Promise<Envelope> {
  const receipt_key_thumbprint = world.receiptKey.kid
  const report_data_binding = {
    label: 'cmr/report-data/v1',
    receipt_key_thumbprint,
    nonce,
  } as const
  const snp_crl_b64 = toBase64(await revocationList([], { issuer: world.chain.arkName }))
  return envelopeOf(world, { claimed: { report_data_binding, snp_crl_b64 } })
}

async function judgeHop(
  changes: Partial<AttestationBlock> = {},
  options: Parameters<typeof rejudgeHop>[2] = {},
  at = NOW + 60_000,
) {
  const evidence_raw = JSON.parse(JSON.stringify(envelope))
  const hop = {
    block: { ...block, evidence_raw, ...changes },
    evidence: new Map<string, Bytes>(),
    exchange: EXCHANGE,
    at,
  }
  return rejudgeHop(hop, policyOf(), { anchors: anchorsOf(world), ...options })
}

describe("a hop that rests on a provider's envelope", () => {
  it('holds under its release root', async () => {
    expect(failuresOf(await judgeHop())).toEqual([])
  })

  it('is refused where the newest bundle of that root revokes it, whatever its own bundle says', async () => {
    const since = new Date(NOW + 30_000).toISOString()
    const measurements = [{ value: Buffer.from(MEASUREMENT).toString('hex'), since }]
    const newest = await acceptBundle(world, { version: 8, revoked: { measurements } })
    expect(failuresOf(await judgeHop({}, { newest }))).toEqual([
      'provider_policy: the measurement is not one the operator allows (not_revoked)',
    ])
    const accepted = await judgeHop({}, { newest, acceptBeforeRevocation: true })
    expect(failuresOf(accepted)).toEqual([])
    expect(accepted.notes).toEqual([
      expect.stringMatching(
        /^not_revoked: measurement \w+ is revoked since .*; accepted as made before that$/,
      ),
    ])
  })

  it('is refused once the evidence has ended by itself, whatever age the policy allows', async () => {
    const honest = await provingEnvelope(NONCE)
    const short = { ...honest, max_age_seconds: 600 }
    const evidence_raw = JSON.parse(JSON.stringify(short))
    const ends = Date.parse(short.issued_at) + 600_000
    const hour = 3_600_000
    expect(failuresOf(await judgeHop({ evidence_raw }, {}, ends + hour))).toEqual([])
    expect(failuresOf(await judgeHop({ evidence_raw }, {}, ends + hour + 1))).toEqual([
      `hop_age: it had ended before, at ${new Date(ends).toISOString()}`,
    ])
  })

  it('is refused where its report binds no nonce, also where 64 zeros are written in place of one', async () => {
    const cached = await provingEnvelope('')
    const binding = cached.report_data_binding
    for (const nonce of ['', ZEROS]) {
      const raw = { ...cached, report_data_binding: { ...binding, nonce } }
      const judged = await judgeHop({ evidence_raw: JSON.parse(JSON.stringify(raw)) })
      expect(failuresOf(judged)).toEqual([
        'provider_policy: the evidence was not made for our nonce (nonce)',
      ])
    }
  })

  it('is refused where its summary says something else, whatever stands beside the summary', async () => {
    const { evidence_summary: summary } = block
    const changed = { evidence_summary: { ...summary, workload_version: '9.9.9' } }
    const beside = { ...changed, workload_version: '1.2.3' }
    for (const changes of [changed, beside]) {
      expect(failuresOf(await judgeHop(changes))).toEqual([
        'hop_consistent: workload_version differ',
      ])
    }
  })
})
