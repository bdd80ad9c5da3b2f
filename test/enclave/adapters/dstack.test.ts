import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import {
  PROMPT,
  startAttested,
  type AttestedSetting,
  type AttestedWorld,
} from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import {
  APP_COMPOSE,
  bootEvents,
  COMPOSE_HASH,
  dstackReport,
  MEASUREMENT,
  type DstackNode,
} from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import {
  makeSyntheticNvidia,
  type SyntheticNvidia,
  type VerdictOf,
} from '../../support/synthetic-nvidia.ts'
import {
  answerAsIntel,
  fetchFrom,
  MR_SEAM,
  register,
  teeTcbSvn,
  type PcsOptions,
} from '../../support/synthetic-tdx.ts'

let intel: SyntheticIntel
let nvidia: SyntheticNvidia
let tls: DaemonTls
let otherTls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[intel, nvidia, tls, otherTls] = await Promise.all([
    makeSyntheticIntel(Date.now()),
    makeSyntheticNvidia(),
    makeTlsIdentity([], new Date()),
    makeTlsIdentity([], new Date()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

interface Change {
  readonly node?: Partial<DstackNode>
  /** Changes the finished report. */
  readonly report?: (report: Record<string, unknown>) => unknown
  readonly policy?: Record<string, unknown>
  readonly pcs?: Partial<PcsOptions>
  readonly verdict?: Partial<VerdictOf>
  readonly nrasStatus?: number
  readonly setting?: Partial<AttestedSetting>
  readonly outage?: boolean
}

const PAYLOAD = (nonce: string) =>
  JSON.stringify({ nonce, arch: 'HOPPER', evidence_list: [{ certificate: 'c', evidence: 'e' }] })

const twoDevices = ({ request_nonce: nonce }: Record<string, unknown>) =>
  JSON.stringify({ nonce, arch: 'HOPPER', evidence_list: [{ device: 1 }, { device: 2 }] })

async function start(change: Change = {}): Promise<AttestedWorld> {
  const answers = await answerAsIntel(intel, { now: Date.now(), ...change.pcs })
  const asIntel = fetchFrom(answers)
  const webFetch: typeof fetch = async (input, init) => {
    if (change.outage) throw new Error('no network')
    const request = new Request(input, init)
    if (request.url.endsWith('jwks.json')) return new Response(nvidia.jwks)
    if (!request.url.includes('nvidia')) return asIntel(request)
    const { nonce }: { nonce: string } = await request.json()
    const verdict = await nvidia.verdict({ nonce, now: Date.now(), ...change.verdict })
    return new Response(verdict, { status: change.nrasStatus ?? 200 })
  }
  world = await startAttested({
    attestation: { adapter: 'dstack', allowed_compose_hashes: [COMPOSE_HASH], ...change.policy },
    tls,
    apiKey: 'secret-key',
    documents: async ({ pathname, searchParams }) => {
      if (pathname !== '/v1/attestation/report') return undefined
      const nonce = searchParams.get('nonce') ?? ''
      const report = await dstackReport(intel, {
        nonce,
        tlsSpkiSha256: tls.spkiSha256,
        nvidiaPayload: PAYLOAD(nonce),
        ...change.node,
      })
      return JSON.stringify(change.report ? change.report({ ...report }) : report)
    },
    ...change.setting,
    deps: { webFetch, verifyQuote: createQuoteVerifier(intel.rootDer) },
  })
  return world
}

describe('a node of the dstack family', () => {
  it('is proven, called, and described by what its quote, its log and its GPUs say', async () => {
    const pinned = { allowed_measurements: [MEASUREMENT] }
    const { proofs, provider, link, settled } = await start({ policy: pinned })
    expect(await settled()).toMatchObject({ adapter: 'dstack', state: 'verified', reason: null })
    expect(provider.received()).toContain('authorization: Bearer secret-key')
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    const digest = String(answer.headers['x-cmr-evidence-sha256'])
    expect(proofs.hop('nova', digest)).toMatchObject({
      block: {
        tee: 'tdx',
        measurement: MEASUREMENT,
        verified: true,
        verification_mode: 'dstack-tdx',
        attestation_strength: 'hardware',
        evidence_summary: {
          compose_hash: COMPOSE_HASH,
          tcb_status: 'UpToDate',
          os_image_hash: 'cc'.repeat(32),
          signing_address: 'ab'.repeat(32),
          tdx_module: { version: 1, svn: 5, tcb_status: 'UpToDate', mr_seam: MR_SEAM },
          gpu: {
            devices: 1,
            models: ['GH100 A01 GSP BROM'],
            verified: true,
            source: 'nvidia_remote_verdict',
            verified_here: expect.arrayContaining(['verdict_signature', 'distinct_devices']),
            word_of_nvidia: expect.arrayContaining(['measurements', 'device_certificates']),
            bound_to_cpu: false,
          },
        },
      },
      evidenceRefs: [digest],
      messageKey: { algorithm: 'ed25519', address: 'ab'.repeat(32) },
    })
    const policy = { adapter: 'dstack', allowed_compose_hashes: [COMPOSE_HASH] }
    const verifyQuote = createQuoteVerifier(intel.rootDer)
    const judged = await rejudge(proofs, digest, { ...policy, ...pinned }, { verifyQuote })
    expect(failuresOf(judged)).toEqual([])
    expect(failuresOf(await rejudge(proofs, digest, policy, { verifyQuote }))).toEqual([
      'provider_policy: your policy pins no operating system, so the workload is what an unknown one says it is',
    ])
  })

  it("is in force no longer than Intel's documents are in date", async () => {
    const end = Math.floor(Date.now() / 1000 + 300) * 1000
    const { settled } = await start({ pcs: { tcbInfoEnds: end } })
    expect(await settled()).toMatchObject({ expires_at: new Date(end).toISOString() })
  })

  it('is called, and not verified, under an operating system that nobody pinned', async () => {
    const { proofs, link, settled } = await start()
    await settled()
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    expect(proofs.hop('nova', String(answer.headers['x-cmr-evidence-sha256']))).toMatchObject({
      block: {
        verified: false,
        attestation_strength: 'hardware-os-unpinned',
        evidence_summary: { os_pinned: false },
      },
    })
  })

  it.each<[string, Change]>([
    ['with an Ethereum address', { node: { algorithm: 'ecdsa', address: 'cd'.repeat(20) } }],
    ['with firmware and OS pinned', { policy: { allowed_measurements: [MEASUREMENT] } }],
    [
      'created without MRCONFIGID, as the tools do',
      { node: { guest: { mrConfigId: register(0) } } },
    ],
    [
      'without GPUs, where the operator takes that',
      { policy: { gpu: 'optional' }, node: { nvidiaPayload: undefined } },
    ],
    [
      'while the GPU service is down, where GPUs are optional',
      { policy: { gpu: 'optional' }, nrasStatus: 503 },
    ],
    [
      'in a state that the operator takes',
      { policy: { tcb_statuses: ['UpToDate', 'OutOfDate'] }, pcs: { aboveThePlatform: true } },
    ],
    ['behind its gateway', { report: (report) => ({ gateway_attestation: report }) }],
    [
      'of a fleet, where it is the one that answers this connection',
      {
        report: (report) => ({
          ...report,
          signing_address: 'ef'.repeat(32),
          all_attestations: [report],
        }),
      },
    ],
    [
      'whose workload measures more after boot',
      {
        node: {
          events: [...bootEvents(), { name: 'compose-hash', payload: 'ff'.repeat(32) }],
        },
      },
    ],
  ])('is proven %s', async (_what, change) => {
    const { settled } = await start(change)
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
  })
})

const HARDWARE = 'the hardware evidence does not hold'
const EVENT_LOG = 'the event log does not add up to the measured register'
const COMPOSE = 'the workload is not one the operator allows, or is not the one measured'
const GPU = 'the GPU evidence does not hold'
const NONCE = 'the evidence was not made for our nonce'
const OUTAGE = 'a service that verification needs did not answer'

const renamed = (from: string, to: string) =>
  bootEvents().map((event) => (event.name === from ? { ...event, name: to } : event))

const relogged = (change: (events: Record<string, unknown>[]) => unknown) => ({
  report: (report: Record<string, unknown>) => ({
    ...report,
    event_log: change(JSON.parse(String(report['event_log']))),
  }),
})

describe('not a byte of a prompt goes to a node', () => {
  it.each<[string, Change, string]>([
    [
      'whose quote was changed',
      {
        report: (report) => ({
          ...report,
          intel_quote: String(report['intel_quote']).replace(
            /^(.{1400})(.)/,
            (_all, head: string, digit: string) => head + (digit === 'f' ? '0' : 'f'),
          ),
        }),
      },
      `${HARDWARE} (tdx_quote)`,
    ],
    ['whose quote is for another nonce', { node: { nonce: 'ab'.repeat(32) } }, NONCE],
    [
      'whose quote is for another key',
      { node: { tlsSpkiSha256: 'ab'.repeat(32) } },
      'the evidence vouches for another TLS key than the connection has',
    ],
    [
      'that says it has another signing address',
      { report: (report) => ({ ...report, signing_address: 'cd'.repeat(32) }) },
      'the evidence vouches for another TLS key than the connection has',
    ],
    [
      'whose quote binds no TLS key (ed25519)',
      { node: { layout: 'address' } },
      'the evidence binds no TLS key, so nothing ties a connection to it',
    ],
    [
      'whose quote binds no TLS key (Ethereum address)',
      { node: { layout: 'address', algorithm: 'ecdsa', address: 'cd'.repeat(20) } },
      'the evidence binds no TLS key, so nothing ties a connection to it',
    ],
    [
      'with firmware or OS that the operator does not allow',
      { policy: { allowed_measurements: ['00'.repeat(192)] } },
      'the measurement is not one the operator allows',
    ],
    [
      'with a workload that the operator does not allow',
      { policy: { allowed_compose_hashes: ['00'.repeat(32)] } },
      COMPOSE,
    ],
    [
      'that shows another compose file than it measured',
      { node: { appCompose: `${APP_COMPOSE} ` } },
      COMPOSE,
    ],
    [
      'created without MRCONFIGID, where the operator requires it',
      { policy: { mr_config_id: 'required' }, node: { guest: { mrConfigId: register(0) } } },
      `${COMPOSE} (mr_config_id)`,
    ],
    [
      'created for another workload',
      { node: { guest: { mrConfigId: register(1) } } },
      `${COMPOSE} (mr_config_id)`,
    ],
    [
      'whose log lacks an event',
      relogged((events) => events.filter(({ event }) => event !== 'app-id')),
      EVENT_LOG,
    ],
    [
      'whose log says another payload than it measured',
      relogged((events) =>
        events.map((event) =>
          event['event'] === 'compose-hash' ? { ...event, event_payload: 'ff'.repeat(32) } : event,
        ),
      ),
      EVENT_LOG,
    ],
    ['whose log is empty', relogged(() => []), EVENT_LOG],
    [
      'that never measured a workload',
      { node: { events: renamed('compose-hash', 'x') } },
      EVENT_LOG,
    ],
    [
      'that measured two workloads',
      { node: { events: renamed('app-id', 'compose-hash') } },
      EVENT_LOG,
    ],
    [
      'with events of an unknown type',
      { node: { events: [...bootEvents(), { name: 'x', payload: '', type: 1 }] } },
      EVENT_LOG,
    ],
    [
      'whose platform is out of date',
      { pcs: { tcbStatus: 'OutOfDate' } },
      'the platform is in a state the operator does not allow',
    ],
    [
      'whose TDX module is out of date',
      { node: { guest: { teeTcbSvn: teeTcbSvn(1, 4) } } },
      'the platform is in a state the operator does not allow',
    ],
    [
      'whose TDX module is not of Intel',
      { node: { guest: { mrSignerSeam: register(1) } } },
      `${HARDWARE} (mr_signer_seam)`,
    ],
    [
      'with two GPUs that are one',
      {
        node: { nvidiaPayload: undefined },
        report: (report) => ({ ...report, nvidia_payload: twoDevices(report) }),
        verdict: { devices: 2, device: { ueid: '1' } },
      },
      `${GPU} (gpu_distinct)`,
    ],
    [
      'that its host can debug',
      { node: { guest: { attributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) } } },
      'the guest can be debugged by its host',
    ],
    ['without GPU evidence', { node: { nvidiaPayload: undefined } }, `${GPU} (gpu_missing)`],
    [
      'with GPU evidence that is no text',
      { report: (report) => ({ ...report, nvidia_payload: {} }) },
      'a document cannot be read (dstack report)',
    ],
    [
      'with GPU evidence for another nonce',
      { node: { nvidiaPayload: PAYLOAD('ab'.repeat(32)) } },
      `${GPU} (gpu_nonce)`,
    ],
    [
      'with GPU evidence that NVIDIA refuses',
      { verdict: { overall: { 'x-nvidia-overall-att-result': false } } },
      `${GPU} (gpu_claims)`,
    ],
    ['while Intel does not answer', { outage: true }, OUTAGE],
    ['while NVIDIA does not answer', { nrasStatus: 503 }, OUTAGE],
    [
      'without TLS',
      { setting: { scheme: 'http' } },
      'the address is not https, so no connection can be bound to evidence',
    ],
    [
      'that answers nonsense',
      { report: () => ({ intel_quote: 'zz' }) },
      'a document cannot be read (dstack report)',
    ],
  ])('%s', async (_what, change, reason) => {
    const { provider, link, settled } = await start(change)
    expect(await settled()).toMatchObject({ state: 'failed', reason })
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain('POST')
    expect(provider.received()).not.toContain(PROMPT)
  })

  it('that changes its key in mid-life and cannot prove the new one', async () => {
    const { provider, link, settled, standing } = await start()
    await settled()
    provider.changeKey(otherTls)
    await provider.cut()
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
    expect(standing().state).toBe('failed')
  })
})
