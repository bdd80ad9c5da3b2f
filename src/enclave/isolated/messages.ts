import type { AdapterName, ProviderPolicy } from '../../protocol/provider-policy.ts'
import type { ErrorTrace } from '../../protocol/error-trace.ts'
import type { RefusalCode } from '../../verify/evidence-refused.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import type { KdsWaits } from '../snp/kds.ts'
import type { AdapterMemory, EvidenceSubject } from '../adapters/adapter.ts'
import type { VerifiedEvidence } from '../adapters/verified-evidence.ts'

/** The start parameters of a thread. */
export interface ThreadData {
  /** The daemon's state directory; AMD's certificates are cached below it. */
  readonly stateDir: string
  /** Shared with the threads of all other providers. */
  readonly kdsWaits: KdsWaits
  readonly ownSimulated: SimulatedPolicy
}

/** To the thread: fetch and verify the evidence of this provider. */
export interface VerifyRequest {
  readonly attestation: ProviderPolicy
  readonly subject: Omit<EvidenceSubject<AdapterName>, 'policy'>
  readonly memory: AdapterMemory
}

/** Messages from the thread. `alive` is sent periodically while nothing blocks the thread. */
export type ThreadAnswer =
  | { readonly type: 'alive' }
  | {
      readonly type: 'verified'
      readonly evidence: VerifiedEvidence
      readonly memory: AdapterMemory
    }
  | { readonly type: 'refused'; readonly code: RefusalCode; readonly checks: readonly string[] }
  | { readonly type: 'failed'; readonly trace: ErrorTrace }

/** Interval of the thread's `alive` messages, ms. */
export const HEARTBEAT_MS = 500
