import type { ChildProcess } from 'node:child_process'
import { z } from 'zod'
import type { SimulatedChipKeys } from '../../src/protocol/boot.ts'
import { nextMessage, startScript, stopProcess } from './processes.ts'
import type { MockAddress } from './system.ts'

const addressSchema = z.object({
  port: z.int(),
  tlsPort: z.int(),
  rootJwk: z.record(z.string(), z.unknown()),
})

/** The mock provider's process. */
export class Mock {
  readonly address: MockAddress
  readonly #child: ChildProcess

  static async start(): Promise<Mock> {
    const child = startScript('mock-provider.ts')
    return new Mock(child, addressSchema.parse(await nextMessage(child)))
  }

  private constructor(child: ChildProcess, address: MockAddress) {
    this.#child = child
    this.address = address
  }

  /** Makes it publish the evidence of a guest on this chip. */
  attest(chip: SimulatedChipKeys): void {
    this.#child.send({ chip })
  }

  stop(): Promise<void> {
    return stopProcess(this.#child)
  }
}
