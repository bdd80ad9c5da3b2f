import { z } from 'zod'
import { unmetConstraint } from '../../protocol/constraints.ts'
import { signRequestSchema, type SignRequest, type SignResponse } from '../../protocol/link.ts'
import { exchangeClaimsSchema } from '../../protocol/receipt.ts'
import type { MessageKey } from '../../verify/providers/judged-evidence.ts'
import type { ReceiptKey } from '../keys/receipt-key.ts'
import { LinkError } from '../link-error.ts'
import type { ProvenHop, ProviderProofs } from '../proofs.ts'
import type { FinishedMessage, MessageAttestation } from '../proofs/message-proof.ts'
import { createFrames, encodeClaims } from './receipt-frame.ts'
import type { RouterHop } from './router-block.ts'
import { signBatch } from './sign-batch.ts'

const MAX_BATCH = 256

/** The link's schema, but without unknown members, because everything in a batch is signed. */
const batchSchema = z.strictObject({
  receipts: z
    .array(
      z.strictObject({
        ...signRequestSchema.shape.receipts.element.shape,
        claims: z.strictObject(exchangeClaimsSchema.shape),
      }),
    )
    .min(1)
    .max(MAX_BATCH),
  known_head: signRequestSchema.shape.known_head,
})

type Batch = z.output<typeof batchSchema>
type SigningRequest = SignRequest['receipts'][number]

export interface SignerDeps {
  readonly key: ReceiptKey
  readonly proofs: Pick<ProviderProofs, 'hop'>
  /** Undefined for a configuration that was never in effect here. */
  readonly routerHop: (configurationSha256: string) => RouterHop | undefined
  /** Fetches a provider's own signature of a finished completion. Never rejects. */
  readonly proveMessage: (message: FinishedMessage) => Promise<MessageAttestation>
}

/**
 * Signs a batch of receipts, all or none ("Receipts" in docs/api.md).
 * @throws LinkError when the body does not match the schema, the configuration is unknown here, or a provider's
 *   evidence is not proven
 */
export type ReceiptSigner = (body: unknown) => Promise<SignResponse>

/** Creates a signer with the key. It uses the proofs of router and providers at the time of each batch. */
export function createReceiptSigner(deps: SignerDeps): ReceiptSigner {
  const { key } = deps
  const frameOf = createFrames(key.kid)
  return async (body) => {
    const { receipts, known_head: knownHead } = readBatch(body)
    const proven = receipts.map((request) => ({
      request,
      router: findRouterHop(request, deps),
      hop: findHop(request, deps),
    }))
    const unsigned = await Promise.all(
      proven.map(async ({ request, router, hop }) => {
        const { claims } = request
        const message = hop.messageKey && (await messageOf(request, hop.messageKey, deps))
        const frame = frameOf(router, hop)
        return { frame, claims: encodeClaims({ claims, message }, frame) }
      }),
    )
    return signBatch(unsigned, key, knownHead)
  }
}

/** The dependencies for signing synchronously. */
export type InstantSignerDeps = Omit<SignerDeps, 'proveMessage'>

/**
 * Signs one receipt synchronously, together with its answer.
 * @param knownHead the SHA-256 of a head that the worker still has
 * @returns undefined where the receipt cannot be signed, or only after the provider's own signature was fetched; the
 *   worker then requests it itself, and learns the reason
 */
export type InstantSigner = (
  request: SigningRequest,
  knownHead?: string,
) => SignResponse | undefined

/** Creates an instant signer with the key. It uses the proofs of router and providers at the time of each receipt. */
export function createInstantSigner(deps: InstantSignerDeps): InstantSigner {
  const { key } = deps
  const frameOf = createFrames(key.kid)
  return (request, knownHead) => {
    const hops = hopsOf(request, deps)
    if (hops === undefined || hops.hop.messageKey !== undefined) return undefined
    const frame = frameOf(hops.router, hops.hop)
    const { claims } = request
    return signBatch([{ frame, claims: encodeClaims({ claims }, frame) }], key, knownHead)
  }
}

function hopsOf(request: SigningRequest, deps: InstantSignerDeps) {
  try {
    return { router: findRouterHop(request, deps), hop: findHop(request, deps) }
  } catch (error) {
    if (error instanceof LinkError) return undefined
    throw error
  }
}

function readBatch(body: unknown): Batch {
  const batch = batchSchema.safeParse(body)
  if (batch.success) return batch.data
  const path = batch.error.issues[0]?.path.join('.')
  throw new LinkError('invalid_request', `claims of the wrong form at ${path || 'the top'}`)
}

function findRouterHop(request: SigningRequest, { routerHop }: InstantSignerDeps): RouterHop {
  const hop = routerHop(request.configuration_sha256)
  if (hop === undefined) {
    throw new LinkError('unknown_evidence', 'no evidence of this instance binds this configuration')
  }
  return hop
}

/** Finds the provider's hop and checks that it meets the caller's constraints, which the receipt names. */
function findHop(
  { claims, provider, evidence_sha256: evidenceSha256 }: SigningRequest,
  { proofs }: InstantSignerDeps,
): ProvenHop {
  const hop = proofs.hop(provider, evidenceSha256)
  if (hop === undefined) {
    throw new LinkError('unknown_evidence', 'no such evidence was verified for this provider')
  }
  const peer = { provider, strength: hop.block.attestation_strength, evidenceSha256 }
  const unmet = claims.constraints && unmetConstraint(claims.constraints, peer)
  if (unmet === undefined) return hop
  throw new LinkError('constraints_unmet', `the provider did not meet \`${unmet}\``)
}

/** Fetches what a provider that signs its answers has signed of this exchange. */
function messageOf(
  {
    claims,
    provider,
    provider_response_id: responseId,
    upstream_model: upstreamModel,
  }: SigningRequest,
  key: MessageKey,
  { proveMessage }: SignerDeps,
): Promise<MessageAttestation> {
  const { request_digest: requestDigest, response_digest: responseDigest } = claims
  return proveMessage({ provider, key, responseId, upstreamModel, requestDigest, responseDigest })
}
