import type { Bytes } from '../../protocol/bytes.ts'
import type { ProviderConfig, ServiceConfig } from '../../protocol/config.ts'
import type { SimulatedPolicy } from '../../verify/snp/anchors.ts'
import type { ObservedFetch } from './observed-fetch.ts'
import type { VerifyQuote } from './tdx-quote.ts'
import type { VerifiedEvidence } from './verified-evidence.ts'

type Attestation = ProviderConfig['attestation']
export type AdapterName = Exclude<Attestation['adapter'], 'none'>
/** What the operator demands of a provider of that adapter. */
export type PolicyOf<Name extends AdapterName> = Extract<Attestation, { adapter: Name }>

/** The provider whose evidence is wanted. */
export interface EvidenceSubject<Name extends AdapterName> {
  readonly policy: PolicyOf<Name>
  /** Without a trailing slash; https. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly mode: ServiceConfig['mode']
}

/** Effects that adapters need, all of them replaceable. */
export interface EvidenceTools {
  /** Milliseconds. */
  readonly now: () => number
  /** 64 lowercase hex digits. */
  readonly newNonce: () => string
  /** Asks the provider itself, and tells whose key was at the other end of that very connection. */
  readonly observedFetch: ObservedFetch
  /** Asks a vendor's verification service: Intel's certificates, NVIDIA's verdicts. */
  readonly webFetch: typeof fetch
  readonly verifyQuote: VerifyQuote
  /** Finds the certificates of an SNP report that comes without them: VEK, ASK, ARK in PEM. */
  readonly findSnpChain: (report: Bytes) => Promise<string>
  /** AMD's revocation list for the root of that chain (PEM), in DER; undefined where none in force could be had. */
  readonly findRevocationList: (chainPem: string) => Promise<Bytes | undefined>
  /** The simulated platform of this very stack; refused outside local mode. */
  readonly ownSimulated: SimulatedPolicy
}

/** Obtains and verifies the evidence of one provider, anew with every call. Throws `EvidenceRefused`. */
export type ObtainEvidence = () => Promise<VerifiedEvidence>

/** One adapter; `open` may keep what must be remembered between two looks at the same provider. */
export interface Adapter<Name extends AdapterName> {
  /** False: the certificate need not be one that browsers would accept, because the pin alone decides. */
  readonly webPki: boolean
  readonly open: (subject: EvidenceSubject<Name>, tools: EvidenceTools) => ObtainEvidence
}

/** Simulated evidence is taken in local mode alone, and only of this stack's own platform. */
export function simulatedPolicy(
  { mode }: Pick<EvidenceSubject<AdapterName>, 'mode'>,
  { ownSimulated }: Pick<EvidenceTools, 'ownSimulated'>,
): SimulatedPolicy {
  return mode === 'local' && typeof ownSimulated === 'object' ? ownSimulated : 'refuse'
}
