/**
 * The entry point for relying parties: `confidential-model-router/verify`. Web standards only: it runs in browsers,
 * Node, Bun, Deno and workerd, makes no network requests by itself, and trusts only AMD and the release root.
 *
 * Four things can be verified: a trust bundle (`verifyTrustBundle`), the envelope of a running router under it
 * (`verifyEnvelope`), a receipt (`verifyReceipt`), and a SEV-SNP report by itself (`verifySnp`). Each returns a
 * `Verdict`: `ok`, and every check with what it proves. A failed check is a value, never an exception;
 * `MalformedEvidence` is thrown where a document cannot be parsed. docs/verification.md explains every check.
 */

export { prefixed, type Check, type Verdict } from './check.ts'
export { PROVES, type CheckName } from './check-names.ts'
export { headline, receiptHeadline, type Statement } from './headline.ts'
export { MalformedEvidence } from '../protocol/malformed-evidence.ts'

// A trust bundle: what the holder of the release root accepts.
export { fetchTrustBundle, type FetchedTrustBundle } from './fetch-trust-bundle.ts'
export {
  verifyTrustBundle,
  type AcceptedBundle,
  type TrustBundleOptions,
  type TrustBundleResult,
} from './trust-bundle.ts'

// An envelope: the identity of a running router, and of its connection.
export { readEnvelope } from './envelope-hardware.ts'
export {
  verifyEnvelope,
  type EnvelopeFreshness,
  type EnvelopeOptions,
  type EnvelopeResult,
  type LiveExpectations,
} from './envelope.ts'
export { type Trust } from './manifest.ts'

// A receipt: which machine answered an exchange, and how.
export type { ExpectedExchange } from './receipt-claims.ts'
export { envelopeProviderJudge, type EnvelopeProviderOptions } from './provider-envelope.ts'
export type { JudgedHop, JudgeProviderHop, ProviderHop } from './receipt-provider.ts'
export type { RouterTrust } from './receipt-router.ts'
export {
  verifyReceipt,
  type ReceiptOptions,
  type ReceiptOutcome,
  type ReceiptResult,
} from './receipt.ts'

// A SEV-SNP report by itself: is it genuine, and is the guest closed?
export type { SimulatedPolicy } from './snp/anchors.ts'
export type { SnpPolicy } from './snp/policy.ts'
export { verifySnp, type SnpOptions, type SnpResult } from './snp/verify-snp.ts'
