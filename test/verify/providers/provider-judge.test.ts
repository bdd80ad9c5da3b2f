import { ed25519 } from '@noble/curves/ed25519.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { sealEvidence } from '../../../src/enclave/adapters/verified-evidence.ts'
import { pcsOverWeb } from '../../../src/enclave/adapters/intel-service.ts'
import { describeInferenceHop } from '../../../src/enclave/proofs/inference-hop.ts'
import { toHex, utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { providerPolicySchema } from '../../../src/protocol/provider-policy.ts'
import type { AttestationBlock } from '../../../src/protocol/receipt.ts'
import { judgeDstack, type DstackEvidence } from '../../../src/verify/providers/dstack/dstack.ts'
import { readDstackReports } from '../../../src/verify/providers/dstack/report.ts'
import type { ProviderHop } from '../../../src/verify/receipt-provider.ts'
import { fetchCollateral } from '../../../src/verify/tdx/collateral.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { EXCHANGE, failuresOf, rejudgeHop } from '../../support/rejudge.ts'
import { COMPOSE_HASH, dstackReport, MEASUREMENT } from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { makeSyntheticNvidia } from '../../support/synthetic-nvidia.ts'
import { answerAsIntel, fetchFrom } from '../../support/synthetic-tdx.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const NONCE = 'a1'.repeat(32)
const SIGNER = new Uint8Array(32).fill(9)
const POLICY = {
  adapter: 'dstack',
  allowed_compose_hashes: [COMPOSE_HASH],
  allowed_measurements: [MEASUREMENT],
}

let intel: SyntheticIntel
let evidence: DstackEvidence
let block: AttestationBlock
let heldChecks: readonly string[]
let raw: string

/** What a router stored and signed of a node of the dstack family. */
beforeAll(async () => {
  intel = await makeSyntheticIntel(NOW)
  const nvidia = await makeSyntheticNvidia()
  const report = JSON.stringify(
    await dstackReport(intel, {
      nonce: NONCE,
      tlsSpkiSha256: 'ab'.repeat(32),
      address: toHex(ed25519.getPublicKey(SIGNER)),
      nvidiaPayload: JSON.stringify({ nonce: NONCE, evidence_list: [{ device: 1 }] }),
    }),
  )
  const [node] = readDstackReports(utf8(report))
  const source = pcsOverWeb(fetchFrom(await answerAsIntel(intel, { now: NOW })))
  evidence = {
    adapter: 'dstack',
    report,
    nonce: NONCE,
    tls_spki_sha256: 'ab'.repeat(32),
    collateral: await fetchCollateral(
      node?.machine.tee === 'tdx' ? node.machine.quote : new Uint8Array(),
      source,
    ),
    gpu: { tokens: await nvidia.verdict({ nonce: NONCE, now: NOW }), keys: nvidia.jwks },
  }
  const policy = providerPolicySchema.parse(POLICY)
  if (policy.adapter !== 'dstack') throw new Error('another adapter')
  const options = { now: NOW, simulated: 'refuse', verifyQuote: verifyQuote() } as const
  raw = JSON.stringify(evidence)
  const judged = await judgeDstack(evidence, policy, options)
  heldChecks = judged.checks
  block = describeInferenceHop(
    await sealEvidence(judged, raw, { now: NOW, maxAgeSeconds: 3600 }),
  ).block
})

const verifyQuote = () => createQuoteVerifier(intel.rootDer)

it('the evidence of a node is accepted with each of its checks by name', () => {
  expect(heldChecks.join(' ')).toBe(
    'quote debug tcb_status event_log mr_config_id measurement nonce tls_key report_data compose_hash gpu',
  )
})

async function hopOf(
  change: { block?: Partial<AttestationBlock>; raw?: string; at?: number } = {},
): Promise<ProviderHop> {
  const text = change.raw ?? raw
  const digest = await sha256Hex(text)
  const reference = { sha256: digest, bytes: utf8(text).length }
  return {
    block: { ...block, evidence_raw: reference, ...change.block },
    evidence: new Map([[digest, utf8(text)]]),
    exchange: EXCHANGE,
    at: change.at ?? NOW + 60_000,
  }
}

async function judgeHop(
  change: Parameters<typeof hopOf>[0] = {},
  policy: Record<string, unknown> = {},
) {
  return rejudgeHop(await hopOf(change), { ...POLICY, ...policy }, { verifyQuote: verifyQuote() })
}

const NO_POLICY_OF_ITS = 'provider_policy: a document is of no format this adapter knows'

describe("an auditor's own look at a provider's hop", () => {
  it('finds what the router found, from the stored evidence alone', async () => {
    const judged = await judgeHop()
    expect(failuresOf(judged)).toEqual([])
    const onRecord = expect.stringMatching(
      /^the GPU verdict is judged by the keys .* as the router recorded them/,
    )
    expect(judged).toMatchObject({ notes: [onRecord], simulated: false })
    expect(judged.checks.map(({ name }) => name)).toEqual([
      'hop_evidence',
      'hop_age',
      'provider_policy',
      'hop_consistent',
    ])
  })

  it('refuses what another policy does not allow, by the name the router would use', async () => {
    const compose = await judgeHop({}, { allowed_compose_hashes: ['00'.repeat(32)] })
    expect(failuresOf(compose)).toEqual([
      'provider_policy: the workload is not one the operator allows, or is not the one measured',
    ])
    const measured = await judgeHop({}, { allowed_measurements: ['00'.repeat(192)] })
    expect(failuresOf(measured)).toEqual([
      'provider_policy: the measurement is not one the operator allows',
    ])
  })

  it('takes only evidence of the adapter that the policy is for', async () => {
    const tinfoil = { adapter: 'tinfoil', allowed_measurements: [MEASUREMENT] }
    const judged = await rejudgeHop(await hopOf(), tinfoil, { verifyQuote: verifyQuote() })
    expect(failuresOf(judged)).toEqual([NO_POLICY_OF_ITS])
    const none = await rejudgeHop(await hopOf(), { adapter: 'none' })
    expect(failuresOf(none)).toContain(NO_POLICY_OF_ITS)
  })

  it("is under Intel's own root unless told otherwise", async () => {
    const judged = await rejudgeHop(await hopOf(), POLICY)
    expect(failuresOf(judged)).toEqual([
      'provider_policy: the hardware evidence does not hold (tdx_quote)',
    ])
  })

  it.each<[string, (of: AttestationBlock) => Partial<AttestationBlock>, string]>([
    ['measurement', () => ({ measurement: '00'.repeat(192) }), 'measurement'],
    ['kind of machine', () => ({ tee: 'sev-snp' }), 'tee'],
    [
      'TLS key',
      ({ evidence_summary: summary }) => ({
        evidence_summary: { ...summary, tls_spki_sha256: '00'.repeat(32) },
      }),
      'tls_spki_sha256',
    ],
    [
      'signing key',
      ({ evidence_summary: summary }) => ({
        evidence_summary: { ...summary, signing_address: '00'.repeat(32) },
      }),
      'signing_address',
    ],
    [
      'GPUs',
      ({ evidence_summary: summary }) => ({
        evidence_summary: { ...summary, gpu: { devices: 8 } },
      }),
      'gpu',
    ],
  ])('refuses a hop whose evidence speaks of another %s', async (_what, change, name) => {
    const judged = await judgeHop({ block: change(block) })
    expect(failuresOf(judged)).toEqual([`hop_consistent: ${name} differ`])
  })

  it.each<[string, (of: DstackEvidence) => object]>([
    ['another nonce', (of) => ({ ...of, nonce: 'b2'.repeat(32) })],
    ['another TLS key', (of) => ({ ...of, tls_spki_sha256: 'b2'.repeat(32) })],
    ['no GPU verdict', (of) => ({ ...of, gpu: null })],
    ['an unknown member', (of) => ({ ...of, more: 1 })],
    [
      'certificates in place of those in the quote',
      (of) => ({ ...of, collateral: { ...of.collateral, pck_certificate_chain: 'x' } }),
    ],
    [
      'an invented quote',
      (of) => ({ ...of, report: of.report.replace(/[0-9a-f]{64}/, 'ab'.repeat(32)) }),
    ],
  ])('refuses stored evidence with %s', async (_what, change) => {
    const judged = await judgeHop({ raw: JSON.stringify(change(evidence)) })
    expect(failuresOf(judged)).toMatchObject([expect.stringMatching(/^provider_policy: /)])
  })

  it('refuses a hop without its evidence, and an invented one', async () => {
    const missing = { ...(await hopOf()), evidence: new Map() }
    expect(failuresOf(await rejudgeHop(missing, POLICY))).toMatchObject([
      expect.stringMatching(/^hop_evidence: the evidence [0-9a-f]{64} is not at hand$/),
    ])
    const invented = await judgeHop({
      block: { evidence_raw: { adapter: 'dstack', quote: 'AAAA' } },
    })
    expect(failuresOf(invented)).toMatchObject([expect.stringMatching(/^provider_policy: /)])
  })

  it('refuses evidence that was not in force for the exchange', async () => {
    const hours = 3_600_000
    expect(failuresOf(await judgeHop({ at: NOW + 2 * hours - 1000 }))).toEqual([])
    expect(failuresOf(await judgeHop({ at: NOW + 2 * hours + 1000 }))).toEqual([
      'hop_age: it was older than the policy allows',
    ])
    expect(failuresOf(await judgeHop({ at: NOW - hours }))).toEqual([
      'hop_age: it was verified after the receipt was issued',
    ])
    expect(failuresOf(await judgeHop({ block: { verified_at: undefined } }))).toContain(
      'hop_age: the receipt does not say when it was verified',
    )
  })

  it('verifies the signature over the exchange again', async () => {
    const text = `glm:${EXCHANGE.requestDigest}:${EXCHANGE.responseDigest}`
    const sign = (of: string, key = SIGNER) => toHex(ed25519.sign(utf8(of), key))
    const proof = { status: 'verified', text, signature: sign(text) }
    const judged = await judgeHop({ block: { message_attestation: proof } })
    expect(failuresOf(judged)).toEqual([])
    expect(judged.checks.at(-1)).toMatchObject({ name: 'message_signature', ok: true })

    const other = `${'00'.repeat(32)}:${EXCHANGE.responseDigest}`
    const replayed = { ...proof, text: other, signature: sign(other) }
    expect(failuresOf(await judgeHop({ block: { message_attestation: replayed } }))).toEqual([
      'message_signature: it is not over the bytes of this exchange',
    ])
    const forged = { ...proof, signature: sign(text, new Uint8Array(32).fill(8)) }
    expect(failuresOf(await judgeHop({ block: { message_attestation: forged } }))).toEqual([
      'message_signature: it is not by the key that the evidence vouches for',
    ])
  })
})
