import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import type { SimulatedChain } from '../../../../src/enclave/simulated/chain.ts'
import { signSimulatedReport, type ReportFields } from '../../../../src/enclave/simulated/report.ts'
import { concatBytes, copyBytes, fromHex, toBase64 } from '../../../../src/protocol/bytes.ts'
import { providerPolicySchema } from '../../../../src/protocol/provider-policy.ts'
import { judgeTinfoil } from '../../../../src/verify/providers/tinfoil/tinfoil.ts'
import type { TinfoilEvidence } from '../../../../src/verify/providers/tinfoil/evidence.ts'
import type { JudgedEvidence } from '../../../../src/verify/providers/judged-evidence.ts'
import { createQuoteVerifier } from '../../../../src/verify/tdx/quote.ts'
import { fetchCollateral } from '../../../../src/verify/tdx/collateral.ts'
import { pcsOverWeb } from '../../../../src/enclave/adapters/intel-service.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../../support/synthetic-intel.ts'
import { DAY_MS, NOW, revocationList, syntheticChain } from '../../../support/synthetic-snp.ts'
import {
  answerAsIntel,
  fetchFrom,
  makeQuote,
  register,
  type GuestFields,
} from '../../../support/synthetic-tdx.ts'

const TLS_KEY = 'a7'.repeat(32)
const REPORT_DATA = concatBytes(fromHex(TLS_KEY), new Uint8Array(32).fill(7))
const MEASUREMENT = '5d'.repeat(48)
const TDX_MEASUREMENT = ['21', '22', '23', '24'].map((byte) => byte.repeat(48)).join('')
const ROOT = 'https://tinfoil.sh/predicate/'

let chain: SimulatedChain
let intel: SyntheticIntel
let crl: string

beforeAll(async () => {
  chain = await syntheticChain()
  intel = await makeSyntheticIntel(NOW)
  crl = toBase64(await revocationList([]))
})

interface Change {
  readonly report?: ReportFields
  readonly guest?: GuestFields
  readonly policy?: Record<string, unknown>
  readonly fetched?: Partial<TinfoilEvidence['fetched']>
}

const evidenceOf = (
  format: string,
  body: Uint8Array,
  fetched: TinfoilEvidence['fetched'],
): TinfoilEvidence => ({
  adapter: 'tinfoil',
  document: JSON.stringify({ format: ROOT + format, body: toBase64(copyBytes(gzipSync(body))) }),
  nonce: '00'.repeat(32),
  tls_spki_sha256: TLS_KEY,
  fetched,
})

async function judge(evidence: TinfoilEvidence, change: Change): Promise<JudgedEvidence> {
  const policy = providerPolicySchema.parse({
    adapter: 'tinfoil',
    allowed_measurements: [MEASUREMENT, TDX_MEASUREMENT],
    ...change.policy,
  })
  if (policy.adapter !== 'tinfoil') throw new Error('another adapter')
  return judgeTinfoil(evidence, policy, {
    now: NOW,
    simulated: 'refuse',
    verifyQuote: createQuoteVerifier(intel.rootDer),
    anchors: [{ product: 'genoa', spkiSha256: chain.arkSpkiSha256 }],
  })
}

/** An enclave on SEV-SNP under a root that stands in for AMD's. */
async function judgeSnp(change: Change = {}): Promise<JudgedEvidence> {
  const report = await signSimulatedReport(chain, {
    reportData: REPORT_DATA,
    measurement: fromHex(MEASUREMENT),
    ...change.report,
  })
  const fetched = { snp_chain_pem: chain.pem, snp_crl_base64: crl, ...change.fetched }
  return judge(evidenceOf('sev-snp-guest/v2', report, fetched), change)
}

/** An enclave on TDX. */
async function judgeTdx(change: Change = {}): Promise<JudgedEvidence> {
  const quote = await makeQuote(intel, {
    mrTd: register(0x21),
    rtMr: [register(0x22), register(0x23), register(0x24), register(0)],
    reportData: REPORT_DATA,
    ...change.guest,
  })
  const source = pcsOverWeb(fetchFrom(await answerAsIntel(intel, { now: NOW })))
  const fetched = { tdx_collateral: await fetchCollateral(quote, source), ...change.fetched }
  return judge(evidenceOf('tdx-guest/v2', quote, fetched), change)
}

const bits = (...indices: number[]) => indices.reduce((value, index) => value + 2 ** index, 0x30000)
const snp = (members: Record<string, unknown>) => ({ snp_policy: members })
const HOST_DATA = 'c4'.repeat(32)
const CONFIG_ID = 'c5'.repeat(48)

describe('a Tinfoil enclave on SEV-SNP', () => {
  it("is proven no longer than AMD's revocation list is valid", async () => {
    expect(await judgeSnp()).toMatchObject({ endsAt: NOW + 30 * DAY_MS })
  })

  it.each<[string, Change]>([
    ['without HOST_DATA', {}],
    [
      'with HOST_DATA that is pinned',
      { report: { hostData: fromHex(HOST_DATA) }, policy: { allowed_host_data: [HOST_DATA] } },
    ],
    [
      'with memory behind CXL, where allowed',
      { report: { policy: bits(21) }, policy: snp({ allow_cxl: true }) },
    ],
    [
      'with everything on that can be required',
      {
        report: { policy: bits(20, 22, 24) },
        policy: snp({
          require_single_socket: true,
          require_xts: true,
          require_ciphertext_hiding: true,
          required_platform_info: ['ecc', 'alias_check_complete'],
        }),
      },
    ],
  ])('is accepted %s', async (_what, change) => {
    expect(await judgeSnp(change)).toMatchObject({
      attestation_strength: 'hardware',
      claims: { tee: 'sev-snp', measurement: MEASUREMENT },
      checks: expect.arrayContaining(['tls_key', 'report_signature', 'revocation', 'host_data']),
    })
  })

  it.each<[string, Change, string, string]>([
    [
      'with HOST_DATA that nobody pinned',
      { report: { hostData: fromHex(HOST_DATA) } },
      'launch_binding',
      'host_data',
    ],
    [
      'with other HOST_DATA than is pinned',
      {
        report: { hostData: fromHex('c6'.repeat(32)) },
        policy: { allowed_host_data: [HOST_DATA] },
      },
      'launch_binding',
      'host_data',
    ],
    [
      'without the HOST_DATA that is pinned',
      { policy: { allowed_host_data: [HOST_DATA] } },
      'launch_binding',
      'host_data',
    ],
    ['with memory behind CXL', { report: { policy: bits(21) } }, 'hardware', 'cxl'],
    ['with SMT', { policy: snp({ allow_smt: false }) }, 'hardware', 'smt'],
    [
      'on more than one socket',
      { policy: snp({ require_single_socket: true }) },
      'hardware',
      'single_socket',
    ],
    [
      'without AES-256 in XTS mode',
      { policy: snp({ require_xts: true }) },
      'hardware',
      'memory_xts',
    ],
    [
      'without ciphertext hiding',
      { policy: snp({ require_ciphertext_hiding: true }) },
      'hardware',
      'ciphertext_hiding',
    ],
    [
      'on a platform without what is required of it',
      { policy: snp({ required_platform_info: ['ciphertext_hiding'] }) },
      'hardware',
      'platform_info',
    ],
    [
      "without AMD's revocation list",
      { fetched: { snp_crl_base64: undefined } },
      'hardware',
      'revocation',
    ],
    [
      'without certificates',
      { fetched: { snp_chain_pem: undefined } },
      'hardware',
      'certificate_chain',
    ],
  ])('is refused %s', async (_what, change, code, check) => {
    await expect(judgeSnp(change)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(`(${check})`),
    })
  })

  it('is read in browsers that cannot iterate over a stream, too', async () => {
    const place = [ReadableStream.prototype, Symbol.asyncIterator] as const
    const iterate = Reflect.getOwnPropertyDescriptor(...place)
    Reflect.deleteProperty(...place)
    try {
      expect(await judgeSnp({})).toMatchObject({ verification_mode: 'tinfoil-v2-snp' })
    } finally {
      Reflect.defineProperty(...place, iterate ?? {})
    }
  })

  it("is refused once AMD has revoked its chip's authority", async () => {
    const revoking = toBase64(await revocationList([0x10001]))
    await expect(judgeSnp({ fetched: { snp_crl_base64: revoking } })).rejects.toMatchObject({
      code: 'hardware',
      message: 'the hardware evidence does not hold (revocation)',
    })
  })
})

describe('a Tinfoil enclave on TDX', () => {
  it('is proven no longer than the documents of Intel are in date', async () => {
    expect(await judgeTdx()).toMatchObject({ endsAt: NOW + 3_600_000 })
  })

  it.each<[string, Change]>([
    ['without MRCONFIGID', {}],
    [
      'with MRCONFIGID that is pinned',
      { guest: { mrConfigId: register(0xc5) }, policy: { allowed_mr_config_id: [CONFIG_ID] } },
    ],
  ])('is accepted %s', async (_what, change) => {
    expect(await judgeTdx(change)).toMatchObject({
      attestation_strength: 'hardware',
      claims: { tee: 'tdx', measurement: TDX_MEASUREMENT },
      checks: expect.arrayContaining(['tls_key', 'quote', 'tcb_status', 'mr_config_id']),
    })
  })

  it.each<[string, Change, string, string]>([
    [
      'with MRCONFIGID that nobody pinned',
      { guest: { mrConfigId: register(0xc5) } },
      'launch_binding',
      'mr_config_id',
    ],
    [
      'without the MRCONFIGID that is pinned',
      { policy: { allowed_mr_config_id: [CONFIG_ID] } },
      'launch_binding',
      'mr_config_id',
    ],
    ['without collateral', { fetched: { tdx_collateral: undefined } }, 'hardware', 'collateral'],
  ])('is refused %s', async (_what, change, code, check) => {
    await expect(judgeTdx(change)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(`(${check})`),
    })
  })
})
