import { beforeAll, describe, expect, test } from 'vitest'
import { utf8, type Bytes } from '../../src/protocol/bytes.ts'
import { MalformedEvidence } from '../../src/protocol/malformed-evidence.ts'
import { STANDALONE_POLICY } from '../../src/verify/snp/policy.ts'
import { REPORT_LAYOUT } from '../../src/verify/snp/report-layout.ts'
import { verifySnp } from '../../src/verify/snp/verify-snp.ts'
import { realFile, realText } from '../support/real-evidence.ts'
import { NOW, syntheticChain, syntheticReport } from '../support/synthetic-snp.ts'
import { AMD_ANCHORS, type Anchor } from '../../src/verify/snp/anchors.ts'

/** Several at a time, so that the cryptography of one runs beside the parsing of another. */
const AT_ONCE = 16

interface Evidence {
  readonly report: Bytes
  readonly chain: Bytes
  readonly anchors: readonly Anchor[]
}

/** The long run flips a bit in every byte of a chain. */
const STRIDE = process.env['EVERY_BYTE'] === undefined ? 7 : 1
const OF_THE_CHAIN = STRIDE === 1 ? 'any byte of the chain' : `every ${STRIDE}th byte of the chain`

/** A policy that asks for nothing, so that only authenticity can refuse. */
const policy = {
  ...STANDALONE_POLICY,
  minReportVersion: 2,
  allowedVmpl: Array.from({ length: 4 }, (_, vmpl) => vmpl),
  allowMaskedChipId: true,
}

async function holds({ report, chain, anchors }: Evidence): Promise<boolean> {
  try {
    const text = new TextDecoder('latin1').decode(chain)
    return (await verifySnp(report, text, { now: NOW, policy, anchors })).ok
  } catch (error) {
    if (error instanceof MalformedEvidence) return false
    throw error
  }
}

/** Positions of single bits, as byte and mask, whose flip goes unnoticed. */
async function unnoticed(
  flips: readonly (readonly [byte: number, mask: number])[],
  evidence: Evidence,
  part: 'report' | 'chain',
): Promise<string[]> {
  const found: string[] = []
  const queue = flips.values()
  const worker = async () => {
    for (const [byte, mask] of queue) {
      const flipped = evidence[part].with(byte, (evidence[part][byte] ?? 0) ^ mask)
      if (await holds({ ...evidence, [part]: flipped })) found.push(`${part} ${byte} ^ ${mask}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return found
}

/** One bit of every byte, another one each time. */
function oneBitOfEach(bytes: Bytes): [number, number][] {
  return Array.from(bytes, (_, index) => [index, 1 << ((index * 5 + 3) % 8)])
}

/** One bit of every byte that this run flips. */
function someOf(bytes: Bytes): [number, number][] {
  return oneBitOfEach(bytes).filter(([byte]) => byte % STRIDE === 0)
}

/** Every bit of the first bytes. */
function everyBitOf(length: number): [number, number][] {
  return Array.from({ length: length * 8 }, (_, bit) => [bit >> 3, 1 << (bit % 8)])
}

describe('synthetic evidence', () => {
  let evidence: Evidence
  beforeAll(async () => {
    const chain = await syntheticChain({ product: 'milan' })
    const anchors = [{ product: chain.product, spkiSha256: chain.arkSpkiSha256 }]
    evidence = { report: await syntheticReport(chain), chain: utf8(chain.pem), anchors }
  })

  test('holds as it is', async () => {
    expect(await holds(evidence)).toBe(true)
  })

  test('a flipped bit in any byte of the report is noticed', async () => {
    expect(await unnoticed(oneBitOfEach(evidence.report), evidence, 'report')).toEqual([])
  }, 60_000)

  test(`a flipped bit in ${OF_THE_CHAIN} is noticed`, async () => {
    expect(await unnoticed(someOf(evidence.chain), evidence, 'chain')).toEqual([])
  }, 120_000)
})

describe('evidence of a real Turin machine', () => {
  let evidence: Evidence
  beforeAll(() => {
    evidence = {
      report: realFile('snp/turin-v5.report.bin'),
      chain: utf8(realText('snp/turin-v5.chain.pem')),
      anchors: AMD_ANCHORS,
    }
  })

  test('holds as it is', async () => {
    expect(await holds(evidence)).toBe(true)
  })

  test('a flipped bit in any byte of the report is noticed', async () => {
    expect(await unnoticed(oneBitOfEach(evidence.report), evidence, 'report')).toEqual([])
  }, 120_000)

  test('every flipped bit of the fields before REPORT_DATA is noticed', async () => {
    const [length] = REPORT_LAYOUT.reportData
    expect(await unnoticed(everyBitOf(length), evidence, 'report')).toEqual([])
  }, 120_000)

  test(`a flipped bit in ${OF_THE_CHAIN} is noticed`, async () => {
    expect(await unnoticed(someOf(evidence.chain), evidence, 'chain')).toEqual([])
  }, 120_000)
})
