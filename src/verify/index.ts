/**
 * What a relying party imports as `confidential-model-router/verify`. Web standards only: it runs in browsers, Node,
 * Bun, Deno and workerd, asks the network for nothing by itself, and trusts AMD and the release root alone.
 */

export { prefixed, type Check, type Verdict } from './check.ts'
export { PROVES, type CheckName } from './check-names.ts'
export { readEnvelope } from './envelope-hardware.ts'
export {
  verifyEnvelope,
  type EnvelopeOptions,
  type EnvelopeResult,
  type LiveExpectations,
} from './envelope.ts'
export { fetchTrustBundle, type FetchedTrustBundle } from './fetch-trust-bundle.ts'
export { type Trust } from './manifest.ts'
export {
  verifyReceipt,
  type ExpectedExchange,
  type ReceiptOptions,
  type ReceiptResult,
} from './receipt.ts'
export { verifySnp, type SnpOptions } from './snp/verify-snp.ts'
export {
  verifyTrustBundle,
  type SeenBundle,
  type TrustBundleOptions,
  type TrustBundleResult,
} from './trust-bundle.ts'
export { MalformedEvidence } from '../protocol/malformed-evidence.ts'
