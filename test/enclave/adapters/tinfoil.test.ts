import { gzipSync } from 'node:zlib'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { SimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { CaptureError } from '../../../src/enclave/snp/capture-error.ts'
import { runChain } from '../../support/run-authority.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import {
  concatBytes,
  copyBytes,
  fromBase64,
  fromHex,
  toBase64,
} from '../../../src/protocol/bytes.ts'
import { TINFOIL_MEASUREMENT, tinfoilV2, tinfoilV3 } from '../../../src/standin/attested-tinfoil.ts'
import {
  PROMPT,
  startAttested,
  type AttestedSetting,
  type AttestedWorld,
} from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { answerAsIntel, fetchFrom, makeQuote, register } from '../../support/synthetic-tdx.ts'

let chain: SimulatedChain
let intel: SyntheticIntel
let tls: DaemonTls
let otherTls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[chain, intel, tls, otherTls] = await Promise.all([
    runChain(),
    makeSyntheticIntel(Date.now()),
    makeTlsIdentity([], new Date()),
    makeTlsIdentity([], new Date()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

type Json = Record<string, unknown>
type Serve = (nonce: string) => Promise<unknown>

const object = (value: unknown): Json => ({ ...Object(value) })

function v3(change: (document: Json) => unknown = (same) => same, key = () => tls): Serve {
  return async (nonce) =>
    change(JSON.parse(await tinfoilV3({ chain, tlsSpkiSha256: key().spkiSha256 }, nonce)))
}

const v2: Serve = async () => JSON.parse(await tinfoilV2({ chain, tlsSpkiSha256: tls.spkiSha256 }))

interface Change extends Partial<AttestedSetting> {
  readonly serve?: Serve
  readonly policy?: Json
}

async function start({ serve = v3(), policy, ...change }: Change = {}): Promise<AttestedWorld> {
  world = await startAttested({
    attestation: {
      adapter: 'tinfoil',
      allowed_measurements: [TINFOIL_MEASUREMENT, TDX_MEASUREMENT],
      ...policy,
    },
    documents: async ({ pathname, searchParams }) => {
      if (pathname !== '/.well-known/tinfoil-attestation') return undefined
      const document = await serve(searchParams.get('nonce') ?? '')
      return typeof document === 'string' ? document : JSON.stringify(document)
    },
    tls,
    ...change,
    deps: {
      ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 },
      findSnpChain: async () => chain.pem,
      findRevocationList: async () => undefined,
      verifyQuote: createQuoteVerifier(intel.rootDer),
      webFetch: fetchFrom(await answerAsIntel(intel, { now: Date.now() })),
      ...change.deps,
    },
  })
  return world
}

const TDX_MEASUREMENT = ['21', '22', '23', '24'].map((byte) => byte.repeat(48)).join('')
const TDX_GUEST = { mrTd: register(0x21), rtMr: registers(0) } as const
const ROOT = 'https://tinfoil.sh/'

function registers(last: number) {
  return [register(0x22), register(0x23), register(0x24), register(last)] as const
}

/** The same document with a TDX quote over the same REPORT_DATA, and Intel's answers beside it. */
function v3Tdx(last = 0, withCollateral = true): Serve {
  return async (nonce) => {
    const document = object(await v3()(nonce))
    const { report_data: reportData } = object(document['challenge'])
    const quote = await makeQuote(intel, {
      ...TDX_GUEST,
      rtMr: registers(last),
      reportData: fromHex(String(reportData)),
    })
    const answers = await answerAsIntel(intel, { now: Date.now() })
    const responses = [...answers].map(([url, { body, headers }]) => ({
      url,
      body_base64: toBase64(body),
      headers: Object.fromEntries(Object.entries(headers).map(([name, one]) => [name, [one]])),
    }))
    const pcs = {
      id: 'pcs',
      role: 'endorsement',
      format: `${ROOT}collateral/intel-pcs/v1`,
      data: { responses },
    }
    return {
      ...document,
      cpu_evidence: {
        ...object(document['cpu_evidence']),
        format: `${ROOT}format/tdx-quote/v1`,
        report_base64: toBase64(quote),
      },
      collateral: withCollateral ? [pcs] : [],
    }
  }
}

const v2Tdx: Serve = async () => {
  const reportData = concatBytes(fromHex(tls.spkiSha256), new Uint8Array(32))
  const quote = await makeQuote(intel, { ...TDX_GUEST, reportData })
  return { format: `${ROOT}predicate/tdx-guest/v2`, body: toBase64(copyBytes(gzipSync(quote))) }
}

describe('a Tinfoil enclave', () => {
  it.each<[string, Serve, string, string, boolean]>([
    ['version 3 on SEV-SNP', v3(), 'tinfoil-v3-snp', 'simulated', true],
    ['version 2 on SEV-SNP', v2, 'tinfoil-v2-snp', 'simulated', false],
    ['version 3 on TDX', v3Tdx(), 'tinfoil-v3-tdx', 'hardware', true],
    [
      'version 3 on TDX, collateral from Intel',
      v3Tdx(0, false),
      'tinfoil-v3-tdx',
      'hardware',
      true,
    ],
    ['version 2 on TDX', v2Tdx, 'tinfoil-v2-tdx', 'hardware', false],
  ])('is proven and called by a document of %s', async (_what, serve, mode, strength, bound) => {
    const { proofs, link, settled } = await start({ serve })
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const answer = await link.post('nova', PROMPT)
    expect(answer.status).toBe(200)
    const hop = proofs.hop('nova', String(answer.headers['x-cmr-evidence-sha256']))
    expect(hop?.block).toMatchObject({
      verification_mode: mode,
      attestation_strength: strength,
      evidence_summary: {
        nonce_bound: bound,
        gpu: { devices: 0, verified: false, source: 'provider_asserted' },
      },
    })
    const policy = {
      adapter: 'tinfoil',
      allowed_measurements: [TINFOIL_MEASUREMENT, TDX_MEASUREMENT],
    }
    const judged = await rejudge(proofs, String(answer.headers['x-cmr-evidence-sha256']), policy, {
      simulated: 'any',
      verifyQuote: createQuoteVerifier(intel.rootDer),
    })
    expect(failuresOf(judged)).toEqual([])
    expect(judged.simulated).toBe(strength === 'simulated')
  })
})

const HARDWARE = 'the hardware evidence does not hold'
const UNREADABLE = 'a document cannot be read'
const MEASUREMENT = 'the measurement is not one the operator allows'
const TLS_KEY = 'the evidence vouches for another TLS key than the connection has'

const within =
  (member: string, change: (inner: Json) => Json) =>
  (document: Json): Json => ({ ...document, [member]: change(object(document[member])) })

const flipReport = within('cpu_evidence', (cpu) => {
  const report = fromBase64(String(cpu['report_base64']))
  report[0x90] = (report[0x90] ?? 0) ^ 1
  return { ...cpu, report_base64: toBase64(report) }
})

describe('not a byte of a prompt goes to an enclave', () => {
  it.each<[string, Change, string]>([
    ['whose report was changed', { serve: v3(flipReport) }, `${HARDWARE} (report_signature)`],
    [
      'whose document is for another nonce',
      { serve: () => v3()('ab'.repeat(32)) },
      'the evidence was not made for our nonce',
    ],
    [
      'that puts our nonce into a document for another',
      {
        serve: async (nonce) => {
          const other = object(await v3()('ab'.repeat(32)))
          return within('challenge', (challenge) => ({ ...challenge, nonce }))(other)
        },
      },
      `${HARDWARE} (report_data)`,
    ],
    [
      'that has no nonce where the operator wants one',
      { serve: v2, policy: { nonce: 'required' } },
      'the evidence was not made for our nonce',
    ],
    ['whose document is for another key', { serve: v3(undefined, () => otherTls) }, TLS_KEY],
    [
      'whose older document is for another key',
      {
        serve: async () =>
          JSON.parse(await tinfoilV2({ chain, tlsSpkiSha256: otherTls.spkiSha256 })),
      },
      TLS_KEY,
    ],
    [
      'that endorses another key than it shows',
      {
        serve: v3((document) => {
          const text = Buffer.from(fromBase64(String(document['crypto_material']))).toString()
          const forged = text.replace(/"data":"[0-9a-f]{64}"/, `"data":"${'ab'.repeat(32)}"`)
          return { ...document, crypto_material: Buffer.from(forged).toString('base64') }
        }),
      },
      `${HARDWARE} (report_data)`,
    ],
    [
      'whose measurement the operator does not allow',
      { policy: { allowed_measurements: ['00'.repeat(48)] } },
      MEASUREMENT,
    ],
    [
      'with firmware below the floor',
      {
        policy: {
          tcb_floor: { genoa: { bootloader: 255, tee: 0, snp: 0, microcode: 0 } },
        },
      },
      `${HARDWARE} (tcb_floor, launch_tcb_floor)`,
    ],
    [
      'on a simulated platform in production',
      { mode: 'production' },
      `${HARDWARE} (simulated_platform)`,
    ],
    ['that extends RTMR3', { serve: v3Tdx(1) }, MEASUREMENT],
    [
      'on TDX with other firmware',
      { serve: v3Tdx(), policy: { allowed_measurements: ['00'.repeat(192)] } },
      MEASUREMENT,
    ],
    [
      'on TDX while Intel does not answer',
      {
        serve: v3Tdx(0, false),
        deps: { webFetch: () => Promise.reject(new Error('no network')) },
      },
      'a service that verification needs did not answer',
    ],
    [
      'whose certificates cannot be had',
      { serve: v2, deps: { findSnpChain: () => Promise.reject(new CaptureError('no_chain')) } },
      'a service that verification needs did not answer',
    ],
    [
      "under a revocation list of the daemon's own that is none",
      { deps: { findRevocationList: async () => Uint8Array.of(1) } },
      `${HARDWARE} (revocation)`,
    ],
    [
      'with an unknown member',
      { serve: v3((document) => ({ ...document, extra: 1 })) },
      `${UNREADABLE} (Tinfoil document v3)`,
    ],
    [
      'with a member given twice',
      {
        serve: async (nonce) =>
          JSON.stringify(await v3()(nonce)).replace('{"format"', '{"format":"x","format"'),
      },
      `${UNREADABLE} (Tinfoil document)`,
    ],
    [
      'with collateral given twice',
      {
        serve: v3((document) => {
          const [first] = [document['collateral']].flat()
          return { ...document, collateral: [first, first] }
        }),
      },
      `${UNREADABLE} (Tinfoil collateral)`,
    ],
    [
      'of a format that nobody knows',
      {
        serve: async () => ({ format: 'https://tinfoil.sh/predicate/sev-snp-guest/v1', body: '' }),
      },
      'a document is of no format this adapter knows',
    ],
    [
      'that sends a bomb of an archive',
      {
        serve: async () => ({
          format: `${ROOT}predicate/sev-snp-guest/v2`,
          body: gzipSync(Buffer.alloc(4_000_000)).toString('base64'),
        }),
      },
      'a document is larger than any honest one',
    ],
    [
      'that sends no archive',
      { serve: async () => ({ format: `${ROOT}predicate/sev-snp-guest/v2`, body: 'AAAA' }) },
      `${UNREADABLE} (Tinfoil document v2)`,
    ],
    [
      'without TLS',
      { scheme: 'http' },
      'the address is not https, so no connection can be bound to evidence',
    ],
    [
      'that is silent',
      { serve: async () => undefined },
      'the provider did not answer with its evidence',
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
    const { provider, link, settled } = await start()
    await settled()
    provider.changeKey(otherTls)
    await provider.cut()
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
  })

  it('whose proof has ended', async () => {
    const { provider, link, settled, advance } = await start({ policy: { max_age_seconds: 60 } })
    await settled()
    advance(61_000)
    const answer = await link.post('nova', PROMPT)
    expect(answer.headers['x-cmr-egress-error']).toBe('provider_unproven')
    expect(provider.received()).not.toContain(PROMPT)
  })
})
