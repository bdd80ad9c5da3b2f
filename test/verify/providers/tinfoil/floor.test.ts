import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { signSimulatedReport } from '../../../../src/enclave/simulated/report.ts'
import { concatBytes, copyBytes, fromHex, toBase64 } from '../../../../src/protocol/bytes.ts'
import { providerPolicySchema } from '../../../../src/protocol/provider-policy.ts'
import { judgeTinfoil } from '../../../../src/verify/providers/tinfoil/tinfoil.ts'
import type { Product } from '../../../../src/verify/snp/product.ts'
import type { Tcb } from '../../../../src/verify/snp/tcb.ts'
import { revocationList, NOW, syntheticChain } from '../../../support/synthetic-snp.ts'

const TLS_KEY = 'a7'.repeat(32)
const MEASUREMENT = '5d'.repeat(48)
const FLOOR = /^the hardware evidence does not hold \(tcb_floor, launch_tcb_floor\)$/

/** An enclave with this firmware, under a policy that names no floor. */
async function judgeAt(product: Product, cpuid: readonly number[], tcb: Tcb) {
  const chain = await syntheticChain({ product, tcb })
  const report = await signSimulatedReport(chain, {
    reportData: concatBytes(fromHex(TLS_KEY), new Uint8Array(32)),
    measurement: fromHex(MEASUREMENT),
    cpuid: Uint8Array.from(cpuid),
  })
  const policy = providerPolicySchema.parse({
    adapter: 'tinfoil',
    allowed_measurements: [MEASUREMENT],
  })
  if (policy.adapter !== 'tinfoil') throw new Error('another adapter')
  const format = 'https://tinfoil.sh/predicate/sev-snp-guest/v2'
  const crl = await revocationList([], { issuer: chain.arkName })
  return judgeTinfoil(
    {
      adapter: 'tinfoil',
      document: JSON.stringify({ format, body: toBase64(copyBytes(gzipSync(report))) }),
      nonce: '00'.repeat(32),
      tls_spki_sha256: TLS_KEY,
      fetched: { snp_chain_pem: chain.pem, snp_crl_base64: toBase64(crl) },
    },
    policy,
    {
      now: NOW,
      simulated: 'refuse',
      verifyQuote: () => Promise.reject(new Error('no quotes')),
      anchors: [{ product, spkiSha256: chain.arkSpkiSha256 }],
    },
  )
}

const MILAN = { bootloader: 3, tee: 0, snp: 24, microcode: 219 }
const GENOA = { bootloader: 7, tee: 0, snp: 23, microcode: 84 }
const TURIN = { fmc: 1, bootloader: 1, tee: 1, snp: 4, microcode: 82 }

/** Each part at the lowest firmware that AMD calls mitigated, or that the provider's own policy takes. */
const PARTS: readonly (readonly [string, Product, number[], Tcb])[] = [
  ['Milan', 'milan', [0x19, 0x01, 1], MILAN],
  ['Milan with stacked cache', 'milan', [0x19, 0x01, 2], { ...MILAN, microcode: 68 }],
  ['Genoa', 'genoa', [0x19, 0x11, 1], GENOA],
  ['Genoa with stacked cache', 'genoa', [0x19, 0x11, 2], { ...GENOA, microcode: 79 }],
  ['Bergamo', 'genoa', [0x19, 0xa0, 2], { ...GENOA, microcode: 25 }],
  ['Turin', 'turin', [0x1a, 0x02, 1], TURIN],
  ['dense Turin', 'turin', [0x1a, 0x11, 0], TURIN],
]

describe("without an operator's floor", () => {
  it.each(PARTS)('an enclave on %s at the published floor is accepted', async (...part) => {
    const [, product, cpuid, tcb] = part
    expect(await judgeAt(product, cpuid, tcb)).toMatchObject({ attestation_strength: 'hardware' })
  })

  it.each(
    PARTS.flatMap(([name, product, cpuid, tcb]) =>
      Object.entries(tcb)
        .filter(([, level]) => level > 0)
        .map(
          ([component, level]) =>
            [
              `${name} with ${component}`,
              product,
              cpuid,
              { ...tcb, [component]: level - 1 },
            ] as const,
        ),
    ),
  )('an enclave on %s one below it is refused', async (_name, product, cpuid, tcb) => {
    await expect(judgeAt(product, cpuid, tcb)).rejects.toThrow(FLOOR)
  })

  it('no part passes by the microcode series of another', async () => {
    await expect(judgeAt('milan', [0x19, 0x01, 1], { ...MILAN, microcode: 68 })).rejects.toThrow(
      FLOOR,
    )
    await expect(judgeAt('genoa', [0x19, 0x11, 1], { ...GENOA, microcode: 79 })).rejects.toThrow(
      FLOOR,
    )
    await expect(judgeAt('genoa', [0x19, 0x11, 2], { ...GENOA, microcode: 25 })).rejects.toThrow(
      FLOOR,
    )
  })
})
