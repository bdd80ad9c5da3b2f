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
  /** Reports of this machine running the release of that identity tag. */
  source(identityTag: string): Promise<ReportSource>
  /** The launch digest of this machine running that release, lowercase hex. */
  measure(identityTag: string): Promise<string>
  /** Which simulated root the daemon takes for its own; of a real machine none. */
  simulatedPolicy(): Promise<SimulatedPolicy>
  /** The state that lets a later process continue as the same machine; null for real hardware. */
  keep(): Promise<SimulatedChipKeys | null>
}

/** The machine whose reports this source captures. What it runs was measured at launch, whatever the tag. */
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

/** A machine made up for local stacks, or the one that an earlier start made up. `now` in milliseconds. */
export function simulatedMachine(kept: SimulatedChipKeys | null, now: number): Machine {
  const chain = obtainSimulatedChain(kept, now)
  // Every caller that awaits the chain gets the failure; until then it must not count as unhandled.
  chain.catch(() => {})
  return {
    source: async (tag) => createSimulatedSource(await chain, await simulatedMeasurement(tag)),
    measure: async (tag) => toHex(await simulatedMeasurement(tag)),
    simulatedPolicy: async () => ({ arkSpkiSha256: (await chain).arkSpkiSha256 }),
    keep: async () => exportSimulatedChain(await chain),
  }
}
