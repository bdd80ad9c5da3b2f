import type { Bytes } from '../../protocol/bytes.ts'
import type { ServiceConfig } from '../../protocol/config.ts'
import type { AdapterName, PolicyOf } from '../../protocol/provider-policy.ts'
import type { JudgeOptions } from '../../verify/providers/judged-evidence.ts'
import type { AcceptedBundle } from '../../verify/trust-bundle.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import type { VerifyProvenance } from '../../verify/providers/provenance.ts'
import type { VerifyQuote } from '../../verify/tdx/quote.ts'
import type { ObservedFetch } from './observed-fetch.ts'
import type { VerifiedEvidence } from './verified-evidence.ts'

/** The provider to be attested. */
export interface EvidenceSubject<Name extends AdapterName> {
  readonly policy: PolicyOf<Name>
  /** Without a trailing slash; https. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly mode: ServiceConfig['mode']
  /** `service.allow_simulated` of the configuration; local mode needs no permission. */
  readonly allowSimulated: boolean
}

/** The side effects of adapters, replaceable in tests. */
export interface EvidenceDeps {
  /** Milliseconds. */
  readonly now: () => number
  /** 64 lowercase hex digits. */
  readonly newNonce: () => string
  /** Sends a request to the provider; returns the answer and the peer's TLS key on that connection. */
  readonly observedFetch: ObservedFetch
  /** Calls a vendor's service: for Intel's certificates or NVIDIA's verdicts. */
  readonly webFetch: typeof fetch
  readonly verifyQuote: VerifyQuote
  readonly verifyProvenance: VerifyProvenance
  /**
   * Finds the certificates of an SNP report that comes without them: VEK, ASK, ARK in PEM.
   * @throws CaptureError when none verifies the report
   */
  readonly findSnpChain: (report: Bytes) => Promise<string>
  /** AMD's revocation list for the root of that chain (PEM), in DER; undefined where no valid one is available. */
  readonly findRevocationList: (chainPem: string) => Promise<Bytes | undefined>
  /** Which simulated platform is accepted: the one of this stack; `refuse` on real hardware. */
  readonly ownSimulated: SimulatedPolicy
}

/**
 * Obtains and verifies the evidence of one provider; every call fetches it again.
 * @throws EvidenceRefused when the evidence fails a check or a service does not answer; its code says which
 */
export type ObtainEvidence = () => Promise<VerifiedEvidence>

/** What an adapter remembers about a provider between two verifications: plain data, which the adapter modifies. */
export interface AdapterMemory {
  /** The newest trust bundle of an `envelope` host; no older one is accepted after it. */
  lastAccepted?: AcceptedBundle | undefined
}

/**
 * One adapter: it gathers the evidence of a provider and has it judged by `src/verify/providers`, exactly as a relying
 * party would.
 */
export interface Adapter<Name extends AdapterName> {
  /** Whether the provider's certificate must be one that browsers accept. If false, only the pinned key counts. */
  readonly webPki: boolean
  readonly open: (
    subject: EvidenceSubject<Name>,
    deps: EvidenceDeps,
    memory: AdapterMemory,
  ) => ObtainEvidence
}

type JudgingDeps = Pick<EvidenceDeps, 'now' | 'verifyQuote' | 'verifyProvenance' | 'ownSimulated'>

/**
 * The options for judging a provider's evidence. Simulated evidence is accepted in local mode, and in production mode
 * where the configuration allows it; but only by a router that itself runs on a simulated platform, and only from that
 * same platform.
 */
export function judgeOptions(
  { mode, allowSimulated }: Pick<EvidenceSubject<AdapterName>, 'mode' | 'allowSimulated'>,
  { now, verifyQuote, verifyProvenance, ownSimulated }: JudgingDeps,
): JudgeOptions {
  const allowed = (mode === 'local' || allowSimulated) && typeof ownSimulated === 'object'
  const simulated = allowed ? ownSimulated : 'refuse'
  return { now: now(), simulated, verifyQuote, verifyProvenance }
}
