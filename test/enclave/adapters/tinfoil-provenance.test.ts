import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { createProvenanceVerifier } from '../../../src/enclave/provenance/verify-bundle.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import type { VerifyProvenance } from '../../../src/verify/providers/provenance.ts'
import { TINFOIL_MEASUREMENT, tinfoilV2, tinfoilV3 } from '../../../src/standin/attested-tinfoil.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import { runChain } from '../../support/run-authority.ts'
import {
  BUILDER,
  COMMIT,
  makeSyntheticSigstore,
  SUBJECT,
  type RecordChange,
  type SyntheticSigstore,
} from '../../support/synthetic-sigstore.ts'

let chain: SimulatedChain
let tls: DaemonTls
let sigstore: SyntheticSigstore
let verifyProvenance: VerifyProvenance
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[chain, tls, sigstore] = await Promise.all([
    runChain(),
    makeTlsIdentity([], new Date()),
    makeSyntheticSigstore(),
  ])
  verifyProvenance = createProvenanceVerifier(sigstore.trustedRoot)
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

const PREDICATE_TYPE = 'https://tinfoil.sh/predicate/snp-tdx-multiplatform/v1'
const predicate = {
  snp_measurement: TINFOIL_MEASUREMENT,
  tdx_measurement: { rtmr1: '00'.repeat(48), rtmr2: '00'.repeat(48) },
}
const record = (change: RecordChange = {}) =>
  sigstore.record({ predicateType: PREDICATE_TYPE, predicate, ...change })

const POLICY = { adapter: 'tinfoil', provenance: BUILDER }

/** A document that brings this record along. */
async function withRecord(nonce: string, change: RecordChange): Promise<string> {
  const document = JSON.parse(await tinfoilV3({ chain, tlsSpkiSha256: tls.spkiSha256 }, nonce))
  const data = { repo: 'said', tag: 'said', digest: SUBJECT, sigstore_bundle: await record(change) }
  const format = 'https://tinfoil.sh/collateral/sigstore-code/v1'
  const entry = { id: 'code', role: 'reference-values', format, data }
  return JSON.stringify({ ...document, collateral: [...document.collateral, entry] })
}

/** What Tinfoil's copy of GitHub answers for the newest release. */
function releases(bundle: unknown): typeof fetch {
  const answers: Readonly<Record<string, string>> = {
    '/repos/vega/enclave/releases/latest': '{"tag_name":"v1.2.3"}',
    '/vega/enclave/releases/download/v1.2.3/tinfoil.hash': `${SUBJECT}\n`,
    [`/repos/vega/enclave/attestations/sha256:${SUBJECT}`]: JSON.stringify({
      attestations: [{ bundle }],
    }),
  }
  return async (input) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input)
    const body = answers[pathname]
    return new Response(body ?? null, { status: body === undefined ? 404 : 200 })
  }
}

interface Setting {
  readonly document?: (nonce: string) => Promise<string>
  readonly webFetch?: typeof fetch
}

async function start({ document, webFetch }: Setting): Promise<AttestedWorld> {
  world = await startAttested({
    attestation: POLICY,
    documents: ({ searchParams }) =>
      document?.(searchParams.get('nonce') ?? '') ??
      tinfoilV2({ chain, tlsSpkiSha256: tls.spkiSha256 }),
    tls,
    deps: {
      ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 },
      findSnpChain: async () => chain.pem,
      verifyProvenance,
      ...(webFetch && { webFetch }),
    },
  })
  return world
}

describe('a Tinfoil enclave by the public record of its build', () => {
  it.each<[string, () => Promise<Setting>]>([
    ['that its document brings', async () => ({ document: (nonce) => withRecord(nonce, {}) })],
    ['of the newest release', async () => ({ webFetch: releases(await record()) })],
  ])('is proven by a record %s, and the hop names the release', async (_what, setting) => {
    const { link, proofs, settled } = await start(await setting())
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    expect(proofs.hop('nova', digest)?.block).toMatchObject({
      measurement: TINFOIL_MEASUREMENT,
      evidence_summary: {
        release: { repository: 'vega/enclave', tag: 'v1.2.3', commit: COMMIT },
      },
    })
    const options = { simulated: 'any', verifyProvenance } as const
    expect(failuresOf(await rejudge(proofs, digest, POLICY, options))).toEqual([])
    const pinned = { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT] }
    expect(failuresOf(await rejudge(proofs, digest, pinned, options))).toEqual([])
  })

  it('a router that names another release than the record does is caught', async () => {
    const { proofs, link, settled } = await start({ document: (nonce) => withRecord(nonce, {}) })
    await settled()
    const answer = await link.post('nova', PROMPT)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    const hop = proofs.hop('nova', digest)
    if (hop === undefined) throw new Error('no hop')
    const { evidence_summary: summary = {} } = hop.block
    const judgeAs = (said: object | undefined) => {
      const rest = Object.entries(summary).filter(([name]) => name !== 'release')
      const block = { ...hop.block, evidence_summary: { ...Object.fromEntries(rest), ...said } }
      const lying = { hop: () => ({ ...hop, block }), evidence: () => proofs.evidence(digest) }
      return rejudge(lying, digest, POLICY, { simulated: 'any', verifyProvenance })
    }
    const release = { repository: 'vega/enclave', tag: 'v9' }
    expect(failuresOf(await judgeAs({ release }))).toEqual(['hop_consistent: release differ'])
    expect(failuresOf(await judgeAs(undefined))).toEqual([])
  })

  it('a new release is accepted without a change of configuration', async () => {
    const { settled } = await start({ document: (nonce) => withRecord(nonce, { tag: 'v1.3.0' }) })
    expect(await settled()).toMatchObject({ state: 'verified' })
  })

  it.each<[string, RecordChange, string]>([
    ['of another repository', { repository: 'mallory/enclave' }, 'record_identity'],
    ['of another artefact', { subject: 'ab'.repeat(32) }, 'record_subject'],
    ['of another kind', { predicateType: 'https://slsa.dev/provenance/v1' }, 'record_predicate'],
    ['that expired', { loggedAfter: 900_000 }, 'record_expired'],
    [
      'of another build',
      { predicate: { ...predicate, snp_measurement: '00'.repeat(48) } },
      'record_measurement',
    ],
  ])('gets no prompt with a record %s', async (_what, change, check) => {
    const { link, provider, settled } = await start({
      document: (nonce) => withRecord(nonce, change),
    })
    expect(await settled()).toMatchObject({
      state: 'failed',
      reason: `the public record of the release's build does not hold (${check})`,
    })
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
  })

  it.each<[string, typeof fetch, string]>([
    [
      'nobody answers for releases',
      () => Promise.reject(new Error('no network')),
      'a service that verification needs did not answer',
    ],
    [
      'the release has no record',
      async () => new Response('{}', { status: 404 }),
      'a service that verification needs did not answer',
    ],
    [
      'what answers is no release',
      async () => new Response('[]'),
      'a document cannot be read (release on GitHub)',
    ],
  ])('is not proven where %s', async (_what, webFetch, reason) => {
    const { settled } = await start({ webFetch })
    expect(await settled()).toMatchObject({ state: 'failed', reason })
  })
})
