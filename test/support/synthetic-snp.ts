import {
  issueSimulatedChain,
  makeSimulatedAuthority,
  type SimulatedAuthority,
  type SimulatedChain,
  type SimulatedChip,
} from '../../src/enclave/simulated/chain.ts'

/** The moment at which synthetic evidence is made and judged. */
export const NOW = Date.parse('2026-11-20T12:00:00Z')

let authority: Promise<SimulatedAuthority> | undefined

/** The one authority of this test process: RSA-4096 keys are slow to make. */
export async function syntheticAuthority(): Promise<SimulatedAuthority> {
  authority ??= makeSimulatedAuthority()
  return authority
}

/** A chain of a new chip under that authority, from a root of the name AMD's has unless told otherwise. */
export async function syntheticChain(
  chip: Partial<SimulatedChip> = {},
  now = NOW,
): Promise<SimulatedChain> {
  return issueSimulatedChain(await syntheticAuthority(), now, chip)
}
