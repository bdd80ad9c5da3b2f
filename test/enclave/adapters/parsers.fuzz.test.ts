import { encode } from 'cborg'
import * as fc from 'fast-check'
import { beforeAll, describe, it } from 'vitest'
import { EvidenceRefused } from '../../../src/verify/evidence-refused.ts'
import { readDstackReports } from '../../../src/verify/providers/dstack/report.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { readSnpAttestation } from '../../../src/verify/providers/dstack/attestation.ts'
import { requireSnpImage } from '../../../src/verify/providers/dstack/snp-image.ts'
import { requireTdxImage } from '../../../src/verify/providers/dstack/tdx-image.ts'
import { readVmConfig } from '../../../src/verify/providers/dstack/vm-config.ts'
import { digestMemoryList } from '../../../src/verify/tdx/memory-list.ts'
import { filesOf } from '../../support/synthetic-dstack-snp.ts'
import { checkGpuVerdict } from '../../../src/verify/nvidia/verdict.ts'
import { quoteReportData } from '../../../src/verify/tdx/quote-layout.ts'
import { readTinfoilV2 } from '../../../src/verify/providers/tinfoil/v2.ts'
import { readTinfoilV3 } from '../../../src/verify/providers/tinfoil/v3.ts'
import { runChain } from '../../support/run-authority.ts'
import { copyBytes, toBase64, utf8 } from '../../../src/protocol/bytes.ts'
import { MalformedEvidence } from '../../../src/protocol/malformed-evidence.ts'
import { tinfoilV3 } from '../../../src/standin/attested-tinfoil.ts'

/** Whatever comes, a parser reads it or says that it cannot; nothing else may escape. */
async function expectRead(read: () => unknown): Promise<void> {
  try {
    await read()
  } catch (error) {
    if (!(error instanceof MalformedEvidence || error instanceof EvidenceRefused)) throw error
  }
}

const NONCE = 'ab'.repeat(32)
const RUNS = { numRuns: 200 }

let valid: string

beforeAll(async () => {
  const chain = await runChain()
  valid = await tinfoilV3({ chain, tlsSpkiSha256: 'cd'.repeat(32) }, NONCE)
})

describe('evidence from anybody', () => {
  it('is read or refused as bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), async (bytes) => {
        await expectRead(() => readDstackReports(copyBytes(bytes)))
        await expectRead(() => quoteReportData(copyBytes(bytes)))
        await expectRead(() => readSnpAttestation(copyBytes(bytes)))
        await expectRead(() => readSnpAttestation(copyBytes(Uint8Array.of(0, 3, ...bytes))))
        await expectRead(() => digestMemoryList(bytes, 2 ** 31))
      }),
      RUNS,
    )
  })

  it('is read or refused as what a pinned release says of its measurement', async () => {
    const measured = new Uint8Array(48)
    const quote = { mrTd: measured, rtMr: [measured, measured, measured, measured] } as const
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ depthSize: 'small' }), fc.uint8Array(), async (json, raw) => {
        for (const content of [copyBytes(encode(json)), copyBytes(raw)]) {
          const list = filesOf({ 'measurement.snp.cbor': content, 'measurement.tdx.cbor': content })
          const files = { checksum_file: toBase64(list), measurement: toBase64(content) }
          const launch = { ...files, vcpus: 2, vcpu_type: 'EPYC', guest_features: 1 }
          const vmConfig = readVmConfig({ tdx_measurement: files, memory_size: 2 ** 31 })
          const pinned = [await sha256Hex(list)]
          await expectRead(() => requireSnpImage(measured, launch, pinned))
          await expectRead(() => requireTdxImage({ quote, vmConfig, eventLog: [] }, pinned))
        }
      }),
      RUNS,
    )
  })

  it('is read or refused as JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (json) => {
        await expectRead(() => readDstackReports(utf8(JSON.stringify(json))))
        await expectRead(() => readVmConfig(json))
        await expectRead(() => readVmConfig({ sev_snp_measurement: JSON.stringify(json) }))
        await expectRead(() => readTinfoilV2(json))
        await expectRead(() => readTinfoilV3(json, NONCE))
        await expectRead(() => checkGpuVerdict(json, json, { nonce: NONCE, devices: 1, now: 0 }))
      }),
      RUNS,
    )
  })

  it('is read or refused with any one character of a true document changed', async () => {
    const character = fc.constantFrom('0', 'f', '"', '{', '=', '\u0000', 'é')
    await fc.assert(
      fc.asyncProperty(fc.nat(), character, async (at, by) => {
        const place = at % valid.length
        const text = valid.slice(0, place) + by + valid.slice(place + 1)
        await expectRead(() => {
          let json: unknown
          try {
            json = JSON.parse(text)
          } catch {
            return undefined
          }
          return readTinfoilV3(json, NONCE)
        })
      }),
      RUNS,
    )
  })
})
