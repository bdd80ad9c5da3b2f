import type { SimulatedChipKeys } from '../../protocol/boot.ts'
import { toHex } from '../../protocol/bytes.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import { fieldOf } from '../../verify/snp/report.ts'
import type { ReportSource } from './report-source.ts'
import {
  createSimulatedSource,
  exportSimulatedChain,
  obtainSimulatedChain,
  simulatedMeasurement,
} from './simulated-source.ts'

/** The machine under the daemon. */
export interface Machine {
  /** Reports of this machine for the release with that identity tag. */
  source(identityTag: string): Promise<ReportSource>
  /** The launch digest of this machine for that release, lowercase hex. */
  measure(identityTag: string): Promise<string>
  /** The simulated root that the daemon accepts as its own; none on a real machine. */
  simulatedPolicy(): Promise<SimulatedPolicy>
  /** The state that lets a later process continue as the same machine; null for real hardware. */
  keep(): Promise<SimulatedChipKeys | null>
}

/** The machine whose reports this source captures. Its launch was measured, so the tag is ignored. */
export function realMachine(source: ReportSource): Machine {
  return {
    source: async () => source,
    async measure() {
      const { report } = await source.capture(new Uint8Array(64))
      return toHex(fieldOf(report, 'measurement'))
    },
    simulatedPolicy: async () => 'refuse',
    keep: async () => null,
  }
}

/**
 * A simulated machine for local stacks, new or restored from an earlier start.
 * @param now milliseconds
 */
export function simulatedMachine(kept: SimulatedChipKeys | null, now: number): Machine {
  const chain = obtainSimulatedChain(kept, now)
  // Callers that await the chain get its error; until then it must not be an unhandled rejection.
  chain.catch(() => {})
  return {
    source: async (tag) => createSimulatedSource(await chain, await simulatedMeasurement(tag)),
    measure: async (tag) => toHex(await simulatedMeasurement(tag)),
    simulatedPolicy: async () => ({ arkSpkiSha256: (await chain).arkSpkiSha256 }),
    keep: async () => exportSimulatedChain(await chain),
  }
}
