import type { AdapterName, ProviderPolicy } from '../../protocol/provider-policy.ts'
import type { ErrorTrace } from '../../protocol/error-trace.ts'
import type { RefusalCode } from '../../verify/evidence-refused.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import type { AdapterMemory, EvidenceSubject } from '../adapters/adapter.ts'
import type { VerifiedEvidence } from '../adapters/verified-evidence.ts'

/** What a thread is started with. */
export interface ThreadData {
  /** Of the daemon; AMD's certificates are kept below it. */
  readonly stateDir: string
  readonly ownSimulated: SimulatedPolicy
}

/** To the thread: look at this provider. */
export interface Look {
  readonly attestation: ProviderPolicy
  readonly subject: Omit<EvidenceSubject<AdapterName>, 'policy'>
  readonly memory: AdapterMemory
}

/** From the thread. `alive` comes every so often for as long as nothing blocks it. */
export type ThreadAnswer =
  | { readonly type: 'alive' }
  | {
      readonly type: 'verified'
      readonly evidence: VerifiedEvidence
      readonly memory: AdapterMemory
    }
  | { readonly type: 'refused'; readonly code: RefusalCode; readonly checks: readonly string[] }
  | { readonly type: 'failed'; readonly trace: ErrorTrace }

/** How often a thread says that it is alive, in milliseconds. */
export const HEARTBEAT_MS = 500
