import type { ReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import type { ProviderProofs } from '../../../src/enclave/proofs.ts'
import { UNATTESTED } from '../../../src/enclave/proofs/inference-hop.ts'
import type { SignerDeps } from '../../../src/enclave/sign/receipt-signer.ts'
import { describeRouterHop } from '../../../src/enclave/sign/router-block.ts'
import { CLAIMS as CLAIMS_TO_SIGN } from '../claims-to-sign.ts'
import { keptEnvelope } from '../envelope/cached-envelope.ts'

export type Json = Record<string, unknown>

const { jti: _jti, ...withoutId } = CLAIMS_TO_SIGN

/** Without the id of the receipt, which each has of its own. */
export const CLAIMS = {
  ...withoutId,
  requested_route: 'glm-5',
  prompt_tokens: 3,
  completion_tokens: 5,
}

export const IN_FORCE = 'cf'.repeat(32)

export interface SigningRequest extends Json {
  readonly claims: { readonly jti: string }
}

/** A request to sign one receipt. */
export function ask(claims: Json = {}, rest: Json = {}): SigningRequest {
  const all = { jti: crypto.randomUUID(), ...CLAIMS, ...claims }
  return {
    claims: all,
    provider: 'nova',
    configuration_sha256: IN_FORCE,
    evidence_sha256: null,
    ...rest,
  }
}

const nobodySigns = () => Promise.reject(new Error('no provider signs messages here'))

/** What signs receipts of a provider `nova` without attestation, under the configuration `IN_FORCE`. */
export function signerDeps(key: ReceiptKey, change: Partial<SignerDeps> = {}): SignerDeps {
  const proofs: Pick<ProviderProofs, 'hop'> = {
    hop: (provider, evidence) =>
      provider === 'nova' && evidence === null ? UNATTESTED : undefined,
  }
  const router = describeRouterHop({
    envelope: keptEnvelope(),
    trustBundleJws: 'd.e.f',
    platform: 'simulated',
  })
  const routerHop = (sha256: string) => (sha256 === IN_FORCE ? router : undefined)
  return { key, proofs, routerHop, proveMessage: nobodySigns, ...change }
}
