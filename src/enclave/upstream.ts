import type { DaemonBoot } from '../protocol/boot.ts'
import type { LoadedConfig } from './config/load-config.ts'
import type { Egress } from './open-egress.ts'
import { openCalls, type CallsInputs } from './calls.ts'
import type { Log } from './log.ts'
import type { ProviderProofs } from './proofs.ts'
import {
  ADAPTER_THREAD,
  afterReal,
  isolateAdapters,
  THREAD_LIMITS,
} from './isolated/isolated-adapter.ts'
import { createProviderProofs } from './proofs/provider-evidence.ts'
import type { SignerDeps } from './sign/receipt-signer.ts'
import type { KdsWaits } from './snp/kds.ts'
import type { Machine } from './snp/machine.ts'

/** The daemon's provider side: the proofs of providers, and the egress to them. */
export interface Upstream {
  readonly proofs: ProviderProofs
  readonly egress: Egress
  readonly proveMessage: SignerDeps['proveMessage']
  close(): void
}

export interface UpstreamInputs {
  readonly boot: DaemonBoot
  readonly machine: Machine
  readonly kdsWaits: KdsWaits
  readonly first: LoadedConfig
  /** The configuration in effect. */
  readonly current: () => LoadedConfig
  readonly signer: CallsInputs['signer']
  readonly now: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  /** The id of this thread, a UUID. */
  readonly thread: string
  /** Called whenever a proof begins or ceases to hold. */
  readonly changed: () => void
  readonly log: Log
}

/** Starts to verify every provider of the first configuration, without waiting for the results. */
export async function openUpstream(inputs: UpstreamInputs): Promise<Upstream> {
  const { machine, kdsWaits, first, current, signer, now, random, thread, changed, log } = inputs
  const { stateDir, maxStreams } = inputs.boot
  const openAdapter = isolateAdapters({
    program: ADAPTER_THREAD,
    data: { stateDir, kdsWaits, ownSimulated: await machine.simulatedPolicy() },
    limits: THREAD_LIMITS,
    after: afterReal,
  })
  const proofs = createProviderProofs({ openAdapter, now, random, changed, log })
  proofs.configure(first)
  const connectMs = () => current().config.service.timeouts.connect_ms
  const calls = { proofs, connectMs, signer, maxStreams, now, thread, log }
  const { egress, proveMessage } = openCalls(calls)
  return {
    proofs,
    egress,
    proveMessage,
    close() {
      proofs.close()
      egress.close()
    },
  }
}
