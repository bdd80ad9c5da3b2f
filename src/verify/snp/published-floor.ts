import type { TcbFloors } from '../../protocol/trust-bundle.ts'
import type { SnpReport } from './report.ts'

/**
 * The minimum firmware of a report where the operator configures none: in every component the higher of AMD's published
 * minimum and that of Tinfoil's own policy for its machines (`amd-genoa-prod`, `amd-turin-prod` in its public
 * platform-endorsements). docs/providers.md has the numbers and later bulletins.
 *
 * - Microcode and SNP of Milan and Genoa: AMD-SB-3019 (CVE-2024-56161). Below it forged microcode can be loaded, and a
 *   report proves nothing. The microcode's level is the low byte of its revision, and parts with stacked cache
 *   (stepping 2), Bergamo and Siena count in series of their own.
 * - Boot loader of Milan: AMD-SB-3002. Of Genoa: Tinfoil's policy.
 * - Turin: Tinfoil's policy, which is above AMD-SB-3020 (SNP 4, microcode 80) and AMD-SB-3027 (microcode 81).
 *
 * The CPU model is the one in the report, which the chip signed; a report without one gets the strictest values.
 */
export function publishedFloor({ cpuid }: Pick<SnpReport, 'cpuid'>): TcbFloors {
  const { model = 0, stepping = 0 } = cpuid ?? {}
  const stackedCache = stepping === STACKED_CACHE_STEPPING
  const zen4c = model >= FIRST_ZEN_4C_MODEL
  return {
    milan: { bootloader: 3, tee: 0, snp: 0x18, microcode: stackedCache ? 0x44 : 0xdb },
    genoa: {
      bootloader: 7,
      tee: 0,
      snp: 0x17,
      microcode: zen4c ? 0x19 : stackedCache ? 0x4f : 0x54,
    },
    turin: { fmc: 1, bootloader: 1, tee: 1, snp: 4, microcode: 82 },
  }
}

const STACKED_CACHE_STEPPING = 2
/** Bergamo and Siena. */
const FIRST_ZEN_4C_MODEL = 0xa0
