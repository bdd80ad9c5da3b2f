import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { gatherCollateral, pcsOverWeb } from '../../../src/enclave/adapters/intel-collateral.ts'
import {
  createQuoteVerifier,
  verifyIntelQuote,
  type QuoteCollateral,
  type VerifyQuote,
} from '../../../src/enclave/adapters/tdx-quote.ts'
import { copyBytes, toHex, type Bytes } from '../../../src/protocol/bytes.ts'
import { makeSyntheticIntel, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import {
  answerAsIntel,
  fetchFrom,
  makeQuote,
  register,
  type GuestFields,
  type PcsOptions,
} from '../../support/synthetic-tdx.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')

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
  return gatherCollateral(quote, pcsOverWeb(fetchFrom(answers)))
}

const GUEST: GuestFields = {
  mrTd: register(1),
  mrConfigId: register(2),
  rtMr: [register(3), register(4), register(5), register(6)],
  reportData: new Uint8Array(64).fill(7),
}

describe('a quote of a platform that Intel certifies', () => {
  it('says what the guest is', async () => {
    const quote = await makeQuote(intel, GUEST)
    const verified = verify(quote, await collateralFor(quote), NOW)
    expect(verified).toMatchObject({ tcbStatus: 'UpToDate', advisoryIds: [], debug: false })
    expect(toHex(verified.mrTd)).toBe('01'.repeat(48))
    expect(toHex(verified.mrConfigId)).toBe('02'.repeat(48))
    expect(verified.rtMr.map(toHex)).toEqual(['03', '04', '05', '06'].map((of) => of.repeat(48)))
    expect(toHex(verified.reportData)).toBe('07'.repeat(64))
  })

  it.each(['OutOfDate', 'SWHardeningNeeded'])('tells the state %s', async (tcbStatus) => {
    const quote = await makeQuote(intel, GUEST)
    expect(verify(quote, await collateralFor(quote, { tcbStatus }), NOW)).toMatchObject({
      tcbStatus,
    })
  })

  it('is out of date below every level that Intel lists', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote, { aboveThePlatform: true })
    expect(verify(quote, collateral, NOW).tcbStatus).toBe('OutOfDate')
  })
})

const HARDWARE = 'the hardware evidence does not hold'

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
    expect(() => verify(quote, collateral, NOW)).toThrow(`${HARDWARE} (tdx_quote)`)
  })

  it.each<[string, Partial<PcsOptions>, GuestFields, string]>([
    ['of a revoked platform', { tcbStatus: 'Revoked' }, {}, `${HARDWARE} (tdx_quote)`],
    [
      'of a revoked quoting enclave',
      { quotingEnclaveStatus: 'Revoked' },
      {},
      `${HARDWARE} (tdx_quote)`,
    ],
    [
      'of a revoked quoting enclave on an old platform',
      { quotingEnclaveStatus: 'Revoked', aboveThePlatform: true },
      {},
      `${HARDWARE} (quoting_enclave)`,
    ],
    [
      'of a guest that can be debugged',
      {},
      { attributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) },
      'the guest can be debugged by its host',
    ],
    [
      'of a guest that can be debugged on an old platform',
      { aboveThePlatform: true },
      { attributes: Uint8Array.of(1, 0, 0, 0x10, 0, 0, 0, 0) },
      'the guest can be debugged by its host',
    ],
    [
      'of a guest with reserved attributes on an old platform',
      { aboveThePlatform: true },
      { attributes: Uint8Array.of(0, 1, 0, 0x10, 0, 0, 0, 0) },
      `${HARDWARE} (td_attributes)`,
    ],
  ])('%s', async (_what, options, guest, message) => {
    const quote = await makeQuote(intel, { ...GUEST, ...guest })
    const collateral = await collateralFor(quote, options)
    expect(() => verify(quote, collateral, NOW)).toThrow(message)
  })

  it('under another root', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote)
    expect(() => verifyIntelQuote(quote, collateral, NOW)).toThrow(`${HARDWARE} (tdx_quote)`)
  })

  it('with collateral that has expired', async () => {
    const quote = await makeQuote(intel, GUEST)
    const collateral = await collateralFor(quote)
    expect(() => verify(quote, collateral, NOW + 7_200_000)).toThrow(HARDWARE)
  })

  it('of a revoked chip, and with a revocation list that a stranger signed or that is none', async () => {
    const revoked = await makeSyntheticIntel(NOW, { chip: true })
    const forged = await makeSyntheticIntel(NOW, { listSignedBy: 'stranger' })
    for (const [of, message] of [
      [revoked, `${HARDWARE} (tdx_quote)`],
      [forged, `${HARDWARE} (revocation)`],
    ] as const) {
      // eslint-disable-next-line no-await-in-loop -- two cases
      const quote = await makeQuote(of, GUEST)
      // eslint-disable-next-line no-await-in-loop -- two cases
      const collateral = await collateralFor(quote, {}, of)
      expect(() => createQuoteVerifier(of.rootDer)(quote, collateral, NOW)).toThrow(message)
    }
    const quote = await makeQuote(intel, GUEST)
    const collateral = { ...(await collateralFor(quote)), pck_crl: '00' }
    expect(() => verify(quote, collateral, NOW)).toThrow(`${HARDWARE} (revocation)`)
  })

  it('when Intel does not answer', async () => {
    const quote = await makeQuote(intel, GUEST)
    const source = pcsOverWeb(() => Promise.reject(new Error('no network')))
    await expect(gatherCollateral(quote, source)).rejects.toMatchObject({
      code: 'service_unreachable',
      isOutage: true,
    })
  })
})

const DATA = join(import.meta.dirname, '../../../../shared/data/attestation/tdx')

function read(name: string): [Bytes, QuoteCollateral] {
  return [
    copyBytes(readFileSync(join(DATA, `${name}.bin`))),
    JSON.parse(readFileSync(join(DATA, `${name}.collateral.json`), 'utf8')),
  ]
}

describe.skipIf(!existsSync(DATA))('real quotes', () => {
  it('are up to date while their collateral is, and refused after', () => {
    const [quote, collateral] = read('tdx-quote')
    const verified = verifyIntelQuote(quote, collateral, Date.parse('2025-06-25T00:00:00Z'))
    expect(verified).toMatchObject({ tcbStatus: 'UpToDate', debug: false })
    expect(() => verifyIntelQuote(quote, collateral, Date.parse('2025-07-20T00:00:00Z'))).toThrow(
      `${HARDWARE} (tdx_quote)`,
    )
  })

  it('of a platform that is behind are out of date', () => {
    const [quote, collateral] = read('tdx-outdated')
    const then = Date.parse('2026-02-20T00:00:00Z')
    expect(verifyIntelQuote(quote, collateral, then).tcbStatus).toBe('OutOfDate')
  })

  it('with any byte of the report changed are refused', () => {
    const [quote, collateral] = read('tdx-quote')
    const then = Date.parse('2025-06-25T00:00:00Z')
    for (let offset = 48; offset < 632; offset += 31) {
      const changed = quote.slice()
      changed[offset] = (changed[offset] ?? 0) ^ 0x80
      expect(() => verifyIntelQuote(changed, collateral, then)).toThrow(HARDWARE)
    }
  })
})
