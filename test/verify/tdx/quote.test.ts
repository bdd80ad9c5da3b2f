import { beforeAll, describe, expect, it } from 'vitest'
import { pcsOverWeb } from '../../../src/enclave/adapters/intel-service.ts'
import { fetchCollateral } from '../../../src/verify/tdx/collateral.ts'
import {
  createQuoteVerifier,
  verifyIntelQuote,
  type QuoteCollateral,
  type VerifyQuote,
} from '../../../src/verify/tdx/quote.ts'
import { fromUtf8, toHex, type Bytes } from '../../../src/protocol/bytes.ts'
import { readRealFile } from '../../support/real-files.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import {
  answerAsIntel,
  fetchFrom,
  makeQuote,
  register,
  teeTcbSvn,
  type GuestFields,
  type PcsOptions,
} from '../../support/synthetic-tdx.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const MINUTE = 60_000
const DAY = 86_400_000

let intel: SyntheticIntel
let verify: VerifyQuote

beforeAll(async () => {
  intel = await makeSyntheticIntel(NOW)
  verify = createQuoteVerifier(intel.rootDer)
})

async function collateralFor(
  quote: Bytes,
  options: Partial<PcsOptions> = {},
  of: SyntheticIntel = intel,
): Promise<QuoteCollateral> {
  const answers = await answerAsIntel(of, { now: NOW, ...options })
  return fetchCollateral(quote, pcsOverWeb(fetchFrom(answers)))
}

const GUEST: GuestFields = {
  mrTd: register(1),
  mrConfigId: register(2),
  rtMr: [register(3), register(4), register(5), register(6)],
  reportData: new Uint8Array(64).fill(7),
}

const OLD_MODULE: GuestFields = { teeTcbSvn: teeTcbSvn(1, 4) }

describe('a quote of a platform that Intel certifies', () => {
  it('says what the guest is', async () => {
    const quote = await makeQuote(intel, GUEST)
    const verified = await verify(quote, await collateralFor(quote), NOW)
    expect(verified).toMatchObject({
      tcbStatus: 'UpToDate',
      advisoryIds: [],
      tcbEvaluationDataNumber: 17,
    })
    expect(toHex(verified.mrTd)).toBe('01'.repeat(48))
    expect(toHex(verified.mrConfigId)).toBe('02'.repeat(48))
    expect(verified.rtMr.map(toHex)).toEqual(['03', '04', '05', '06'].map((of) => of.repeat(48)))
    expect(toHex(verified.reportData)).toBe('07'.repeat(64))
  })

  it.each([
    ['TCB info', { tcbInfoEnds: NOW + MINUTE, enclaveIdentityEnds: NOW + 2 * DAY }, MINUTE],
    ['enclave identity', { tcbInfoEnds: NOW + 2 * DAY, enclaveIdentityEnds: NOW + MINUTE }, MINUTE],
    [
      'revocation lists',
      { tcbInfoEnds: NOW + 2 * DAY, enclaveIdentityEnds: NOW + 2 * DAY },
      60 * MINUTE,
    ],
  ])('is proven no longer than its %s', async (_what, options, lasts) => {
    const quote = await makeQuote(intel, GUEST)
    const { endsAt } = await verify(quote, await collateralFor(quote, options), NOW)
    expect(endsAt).toBe(NOW + lasts)
  })

  it.each(['OutOfDate', 'SWHardeningNeeded'])('tells the state %s', async (tcbStatus) => {
    const quote = await makeQuote(intel, GUEST)
    expect(await verify(quote, await collateralFor(quote, { tcbStatus }), NOW)).toMatchObject({
      tcbStatus,
    })
  })

  it('is out of date below every level that Intel lists', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote, { aboveThePlatform: true })
    expect(await verify(quote, collateral, NOW)).toMatchObject({ tcbStatus: 'OutOfDate' })
  })
})

describe('the rating of a platform', () => {
  it.each<[string, Partial<PcsOptions>, GuestFields, string]>([
    ['module 01 at its newest level', {}, {}, 'UpToDate'],
    [
      'module 03 at its newest level, below the one of the platform list',
      {},
      { teeTcbSvn: teeTcbSvn(3, 2) },
      'UpToDate',
    ],
    ['module 01 one behind', {}, { teeTcbSvn: teeTcbSvn(1, 4) }, 'OutOfDate'],
    ['module 01 below every level', {}, { teeTcbSvn: teeTcbSvn(1, 1) }, 'NotSupported'],
    ['module 03 below every level', {}, { teeTcbSvn: teeTcbSvn(3, 1) }, 'NotSupported'],
    ['a module rated with the platform', {}, { teeTcbSvn: teeTcbSvn(0, 5) }, 'UpToDate'],
    [
      'a module rated with the platform, one behind',
      {},
      { teeTcbSvn: teeTcbSvn(0, 4) },
      'OutOfDate',
    ],
    ['a revoked module', { moduleStatus: 'Revoked' }, {}, 'Revoked'],
    ['a module out of date', { moduleStatus: 'OutOfDate' }, {}, 'OutOfDate'],
    [
      'a module out of date on a platform to be hardened',
      { moduleStatus: 'OutOfDate', tcbStatus: 'SWHardeningNeeded' },
      {},
      'OutOfDate',
    ],
    [
      'a module out of date on a platform to be configured',
      { moduleStatus: 'OutOfDate', tcbStatus: 'ConfigurationNeeded' },
      {},
      'OutOfDateConfigurationNeeded',
    ],
    [
      'a platform to be configured',
      { tcbStatus: 'ConfigurationAndSWHardeningNeeded' },
      {},
      'ConfigurationAndSWHardeningNeeded',
    ],
    ['a revoked platform', { tcbStatus: 'Revoked' }, {}, 'Revoked'],
    ['a revoked platform with an old module', { tcbStatus: 'Revoked' }, OLD_MODULE, 'Revoked'],
    ['a revoked quoting enclave', { quotingEnclaveStatus: 'Revoked' }, {}, 'Revoked'],
    ['a quoting enclave out of date', { quotingEnclaveStatus: 'OutOfDate' }, {}, 'OutOfDate'],
    [
      'a revoked quoting enclave on a platform below every level',
      { quotingEnclaveStatus: 'Revoked', aboveThePlatform: true },
      {},
      'Revoked',
    ],
  ])('is of its worst part: %s', async (_what, options, guest, tcbStatus) => {
    const quote = await makeQuote(intel, { ...GUEST, ...guest })
    const verified = await verify(quote, await collateralFor(quote, options), NOW)
    expect(verified.tcbStatus).toBe(tcbStatus)
  })

  it('takes the highest level that is reached, whatever order Intel lists them in', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote, {
      tcbInfo: (info) => ({ ...info, tcbLevels: [lowLevel(info), ...levels(info)] }),
    })
    expect(await verify(quote, collateral, NOW)).toMatchObject({ tcbStatus: 'UpToDate' })
  })

  it('tells the advisories of every part, and which module it is', async () => {
    const quote = await makeQuote(intel, { ...GUEST, ...OLD_MODULE })
    const collateral = await collateralFor(quote, { advisoryIds: ['INTEL-SA-00837'] })
    expect(await verify(quote, collateral, NOW)).toMatchObject({
      advisoryIds: ['INTEL-SA-00837', 'INTEL-SA-01036'],
      tdxModule: { version: 1, svn: 4, status: 'OutOfDate' },
    })
  })
})

const levels = ({ tcbLevels: list }: Record<string, unknown>): unknown[] =>
  Array.isArray(list) ? list : []

/** A level that everything reaches, and that is out of date. */
function lowLevel(info: Record<string, unknown>): object {
  const none = Array.from({ length: 16 }, () => ({ svn: 0 }))
  const tcb = { sgxtcbcomponents: none, pcesvn: 0, tdxtcbcomponents: none }
  return { ...Object(levels(info)[0]), tcb, tcbStatus: 'OutOfDate' }
}

const HARDWARE = 'the hardware evidence does not hold'

const twice = ({ tdxModuleIdentities: list }: Record<string, unknown>) =>
  Array.isArray(list) ? [...list, ...list] : list

describe('a quote is refused', () => {
  it.each([
    ['in its header', 2],
    ['in the report data', 48 + 520],
    ['in RTMR3', 48 + 472],
    ['in the signature', 640],
    ['in the attestation key', 700],
    ['in the report of the quoting enclave', 800],
  ])('with a bit changed %s', async (_where, offset) => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote)
    quote[offset] = (quote[offset] ?? 0) ^ 1
    await expect(verify(quote, collateral, NOW)).rejects.toThrow(`${HARDWARE} (tdx_quote)`)
  })

  it.each<[string, Partial<PcsOptions>, GuestFields, string]>([
    [
      'of a guest that can be debugged',
      {},
      { attributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) },
      'the guest can be debugged by its host',
    ],
    [
      'of a guest with reserved attributes',
      {},
      { attributes: Uint8Array.of(0, 1, 0, 0x10, 0, 0, 0, 0) },
      `${HARDWARE} (td_attributes)`,
    ],
    [
      'of a TDX module that another signer than Intel signed',
      {},
      { mrSignerSeam: register(1) },
      `${HARDWARE} (mr_signer_seam)`,
    ],
    [
      'of a TDX module rated with the platform that another signer signed',
      {},
      { mrSignerSeam: register(1), teeTcbSvn: teeTcbSvn(0, 5) },
      `${HARDWARE} (mr_signer_seam)`,
    ],
    [
      'of a TDX module for debugging',
      {},
      { seamAttributes: Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0) },
      `${HARDWARE} (seam_attributes)`,
    ],
    [
      'of a TDX module for debugging, in the highest byte',
      {},
      { seamAttributes: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0x80) },
      `${HARDWARE} (seam_attributes)`,
    ],
    [
      'of a TDX module of a version that Intel does not know',
      {},
      { teeTcbSvn: teeTcbSvn(2, 200) },
      `${HARDWARE} (tdx_module_version)`,
    ],
    [
      'whose module Intel identifies twice',
      { tcbInfo: (info) => ({ ...info, tdxModuleIdentities: twice(info) }) },
      {},
      `${HARDWARE} (tdx_module_version)`,
    ],
    [
      'under TCB info on another provisioning enclave',
      { tcbInfo: (info) => ({ ...info, pceId: '0001' }) },
      {},
      `${HARDWARE} (pce_id)`,
    ],
    [
      'under TCB info on no provisioning enclave',
      { tcbInfo: (info) => ({ ...info, pceId: undefined }) },
      {},
      'malformed TCB info: pceId',
    ],
    [
      'under TCB info of another kind',
      { tcbInfo: (info) => ({ ...info, id: 'SGX' }) },
      {},
      `${HARDWARE} (tdx_quote)`,
    ],
  ])('%s', async (_what, options, guest, message) => {
    const quote = await makeQuote(intel, { ...GUEST, ...guest })
    const collateral = await collateralFor(quote, options)
    await expect(verify(quote, collateral, NOW)).rejects.toThrow(message)
  })

  it('under another root', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote)
    await expect(verifyIntelQuote(quote, collateral, NOW)).rejects.toThrow(
      `${HARDWARE} (tdx_quote)`,
    )
  })

  it('with collateral that has expired', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote)
    await expect(verify(quote, collateral, NOW + 7_200_000)).rejects.toThrow(HARDWARE)
  })

  it('of a revoked chip, and with a revocation list that a stranger signed or that is none', async () => {
    const revoked = await makeSyntheticIntel(NOW, { chip: true })
    const forged = await makeSyntheticIntel(NOW, { listSignedBy: 'stranger' })
    for (const [of, message] of [
      [revoked, `${HARDWARE} (tdx_quote)`],
      [forged, `${HARDWARE} (revocation)`],
    ] as const) {
      const quote = await makeQuote(of, GUEST)
      const collateral = await collateralFor(quote, {}, of)
      const judging = createQuoteVerifier(of.rootDer)(quote, collateral, NOW)
      await expect(judging).rejects.toThrow(message)
    }
    const quote = await makeQuote(intel, GUEST)
    const collateral = { ...(await collateralFor(quote)), pck_crl: '00' }
    await expect(verify(quote, collateral, NOW)).rejects.toThrow(`${HARDWARE} (revocation)`)
  })

  it('whose platform the key of a chip rates in place of Intel', async () => {
    const thief = { ...intel, signingKey: intel.chipKey, signingChainPem: intel.chipChainPem }
    const quote = await makeQuote(intel, GUEST)
    const honest = await collateralFor(quote)
    const rated = await collateralFor(quote, {}, thief)
    for (const document of ['tcb_info', 'qe_identity'] as const) {
      const forged = {
        ...honest,
        [document]: rated[document],
        [`${document}_signature`]: rated[`${document}_signature`],
        [`${document}_issuer_chain`]: rated[`${document}_issuer_chain`],
      }
      await expect(verify(quote, forged, NOW)).rejects.toThrow(`${HARDWARE} (certificate_roles)`)
    }
  })

  it.each([[[]], [['0000', '0000']], [['0000', '0001']]])(
    'of a chip whose certificate names the provisioning enclaves %j',
    async (pceIds) => {
      const odd = await makeSyntheticIntel(NOW, { pceIds })
      const quote = await makeQuote(odd, GUEST)
      const judging = createQuoteVerifier(odd.rootDer)(
        quote,
        await collateralFor(quote, {}, odd),
        NOW,
      )
      await expect(judging).rejects.toThrow(`${HARDWARE} (pce_id)`)
    },
  )

  it('of a chip that the key of another chip certified in place of Intel', async () => {
    const { forgedChip } = intel
    const quote = await makeQuote({ ...intel, ...forgedChip }, GUEST)
    const collateral = {
      ...(await collateralFor(await makeQuote(intel, GUEST))),
      pck_crl: toHex(forgedChip.chipList),
    }
    await expect(verify(quote, collateral, NOW)).rejects.toThrow(`${HARDWARE} (certificate_roles)`)
  })

  it('when Intel does not answer', async () => {
    const quote = await makeQuote(intel, GUEST)
    const source = pcsOverWeb(() => Promise.reject(new Error('no network')))
    await expect(fetchCollateral(quote, source)).rejects.toMatchObject({
      code: 'service_unreachable',
      isOutage: true,
    })
  })
})

function read(name: string): [Bytes, QuoteCollateral] {
  return [
    readRealFile(`tdx/${name}.bin`),
    JSON.parse(fromUtf8(readRealFile(`tdx/${name}.collateral.json`))),
  ]
}

describe('real quotes', () => {
  const then = Date.parse('2025-06-25T00:00:00Z')

  it('are up to date while their collateral is, and refused after', async () => {
    const [quote, collateral] = read('tdx-quote')
    expect(await verifyIntelQuote(quote, collateral, then)).toMatchObject({
      tcbStatus: 'UpToDate',
      tcbEvaluationDataNumber: 17,
      tdxModule: { version: 1, svn: 6, status: 'UpToDate' },
    })
    const later = Date.parse('2025-07-20T00:00:00Z')
    await expect(verifyIntelQuote(quote, collateral, later)).rejects.toThrow(
      `${HARDWARE} (tdx_quote)`,
    )
  })

  it('of a platform that is behind are out of date', async () => {
    const [quote, collateral] = read('tdx-outdated')
    const judged = await verifyIntelQuote(quote, collateral, Date.parse('2026-02-20T00:00:00Z'))
    expect(judged.tcbStatus).toBe('OutOfDate')
  })

  it('with any byte of the report changed are refused', async () => {
    const [quote, collateral] = read('tdx-quote')
    for (let offset = 48; offset < 632; offset += 31) {
      const changed = quote.slice()
      changed[offset] = (changed[offset] ?? 0) ^ 0x80
      await expect(verifyIntelQuote(changed, collateral, then)).rejects.toThrow(HARDWARE)
    }
  })
})
