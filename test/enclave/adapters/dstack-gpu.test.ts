import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { realText } from '../../support/real-evidence.ts'
import { COMPOSE_HASH, dstackReport } from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { makeSyntheticNvidia, type SyntheticNvidia } from '../../support/synthetic-nvidia.ts'
import { answerAsIntel, fetchFrom } from '../../support/synthetic-tdx.ts'

let intel: SyntheticIntel
let nvidia: SyntheticNvidia
let tls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[intel, nvidia, tls] = await Promise.all([
    makeSyntheticIntel(Date.now()),
    makeSyntheticNvidia(),
    makeTlsIdentity([], new Date()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

interface Setting {
  readonly policy?: Record<string, unknown>
  /** GPU evidence of a report for this nonce. */
  readonly payload: (nonce: string) => string
  /** In place of a nonce drawn at random. */
  readonly nonce?: string
  /** NVIDIA's service answers 500. */
  readonly outage?: boolean
  /** When NVIDIA's verdict expires, seconds since 1970; in an hour unless given. */
  readonly verdictEnds?: number
}

async function start({ policy, payload: payloadFor, nonce: drawn, outage, verdictEnds }: Setting) {
  const asIntel = fetchFrom(await answerAsIntel(intel, { now: Date.now() }))
  const webFetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    if (request.url.endsWith('jwks.json')) return new Response(nvidia.jwks)
    if (!request.url.includes('nvidia')) return asIntel(request)
    const { nonce }: { nonce: string } = await request.json()
    const verdict = await nvidia.verdict({
      nonce,
      now: Date.now(),
      ...(verdictEnds !== undefined && { overall: { exp: verdictEnds } }),
    })
    return new Response(verdict, { status: outage === true ? 500 : 200 })
  }
  world = await startAttested({
    attestation: { adapter: 'dstack', allowed_compose_hashes: [COMPOSE_HASH], ...policy },
    tls,
    documents: async ({ searchParams }) => {
      const nonce = searchParams.get('nonce') ?? ''
      const report = await dstackReport(intel, {
        nonce,
        tlsSpkiSha256: tls.spkiSha256,
        nvidiaPayload: payloadFor(nonce),
      })
      return JSON.stringify(report)
    },
    deps: {
      webFetch,
      verifyQuote: createQuoteVerifier(intel.rootDer),
      ...(drawn !== undefined && { newNonce: () => drawn }),
    },
  })
  return world
}

describe("NVIDIA's verdict", () => {
  it('keeps a proof in force no longer than it is valid itself', async () => {
    const verdictEnds = Math.floor(Date.now() / 1000) + 300
    const payload = (nonce: string) =>
      JSON.stringify({ nonce, arch: 'HOPPER', evidence_list: [{ device: 1 }] })
    const { settled } = await start({ payload, verdictEnds })
    expect(await settled()).toMatchObject({
      state: 'verified',
      expires_at: new Date(verdictEnds * 1000).toISOString(),
    })
  })
})

/** Evidence that a real device signed, for a nonce that is drawn once more. */
describe("GPUs' own reports", () => {
  const recorded: { nonce: string }[] = JSON.parse(realText('gpu/hopper-evidence.json'))
  const nonce = recorded[0]?.nonce ?? ''
  const listed = (list: unknown) => (asked: string) =>
    JSON.stringify({ nonce: asked, arch: 'HOPPER', evidence_list: list })
  const payload = listed(recorded)

  const gpuOf = async ({ settled, proofs, link }: AttestedWorld) => {
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    const hop = proofs.hop('nova', String(answer.headers['x-cmr-evidence-sha256']))
    return hop?.block.evidence_summary?.['gpu']
  }

  it('are verified beside the verdict, and the summary says what is still NVIDIA’s statement', async () => {
    expect(await gpuOf(await start({ payload, nonce }))).toMatchObject({
      source: 'nvidia_remote_verdict',
      verified_here: expect.arrayContaining(['device_certificates', 'report_signature']),
      word_of_nvidia: ['measurements', 'secure_boot', 'revocation'],
    })
  })

  it('are enough where the policy asks for nothing else, and NVIDIA is not asked', async () => {
    const policy = { gpu_checks: ['device_report'] }
    expect(await gpuOf(await start({ payload, nonce, policy, outage: true }))).toMatchObject({
      devices: 1,
      source: 'device_report',
      word_of_nvidia: [],
    })
  })

  it('are of GPUs: where GPUs are required, a list without any proves none', async () => {
    const policy = { gpu_checks: ['device_report'] }
    const { settled } = await start({ payload: listed([]), nonce, policy })
    expect(await settled()).toMatchObject({
      state: 'failed',
      reason: 'a document cannot be read (GPU evidence)',
    })
  })

  it.each<[string, Setting, string]>([
    [
      'are missing where the policy asks for them',
      {
        payload: listed([{ device: 1 }]),
        policy: { gpu_checks: ['nvidia_verdict', 'device_report'] },
      },
      'device_report',
    ],
    ["are of another request, whatever NVIDIA's service says", { payload }, 'gpu_report_nonce'],
    [
      'are one device shown twice',
      {
        payload: listed([...recorded, ...recorded]),
        nonce,
        policy: { gpu_checks: ['device_report'] },
      },
      'gpu_distinct',
    ],
  ])('are refused where they %s', async (_what, setting, check) => {
    const { settled } = await start(setting)
    expect(await settled()).toMatchObject({
      state: 'failed',
      reason: `the GPU evidence does not hold (${check})`,
    })
  })
})
