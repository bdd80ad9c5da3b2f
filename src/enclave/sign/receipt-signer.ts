import { z } from 'zod'
import { utf8 } from '../../protocol/bytes.ts'
import { signCompactJws } from '../../protocol/compact-jws.ts'
import { signRequestSchema, type SignResponse } from '../../protocol/link.ts'
import {
  exchangeClaimsSchema,
  type AttestationBlock,
  type ReceiptClaims,
} from '../../protocol/receipt.ts'
import type { ReceiptKey } from '../keys/receipt-key.ts'
import { LinkError } from '../link/link-error.ts'
import type { ProvenHop, ProviderProofs } from '../proofs.ts'
import type { FinishedMessage, MessageAttestation } from '../proofs/message-proof.ts'
import { ROUTER_VERIFICATION_MODE, type RouterHop } from './router-block.ts'

/** `typ` of the JWS header; keeps a manifest or a bundle from being read as a receipt. */
export const RECEIPT_TYP = 'receipt+jwt'

const MAX_BATCH = 256

/** The link's schema, but with nothing let through that it does not name: all of this gets signed. */
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
})

type Ask = z.output<typeof batchSchema>['receipts'][number]

export interface SignerTools {
  readonly key: ReceiptKey
  readonly proofs: Pick<ProviderProofs, 'hop'>
  /** Undefined until a first envelope was captured. */
  readonly routerHop: () => RouterHop | undefined
  /** Asks a provider for its own signature of a finished completion. Never rejects. */
  readonly proveMessage: (message: FinishedMessage) => Promise<MessageAttestation>
}

/** Signs a batch of receipts, all or none (interface: "Receipt JWS payload claims"). Throws `LinkError`. */
export async function signReceipts(body: unknown, tools: SignerTools): Promise<SignResponse> {
  const batch = batchSchema.safeParse(body)
  if (!batch.success) throw new LinkError('invalid_request', describe(batch.error))
  const router = tools.routerHop()
  if (router === undefined) {
    throw new LinkError('attestation_unavailable', 'there is no evidence to sign receipts under')
  }
  const proven = batch.data.receipts.map((ask) => ({ ask, inference: findHop(ask, tools.proofs) }))
  const receipts = await Promise.all(
    proven.map(async ({ ask, inference }) => ({
      jws: await sign(
        buildClaims(ask, router, await withMessage(ask, inference, tools), tools.key.kid),
        tools.key,
      ),
      evidence_refs: [...new Set([...router.evidenceRefs, ...inference.evidenceRefs])],
    })),
  )
  return { kid: tools.key.kid, receipts }
}

function describe(error: z.ZodError): string {
  const path = error.issues[0]?.path.join('.')
  return `claims of the wrong form at ${path || 'the top'}`
}

function findHop(ask: Ask, proofs: SignerTools['proofs']): ProvenHop {
  const hop = proofs.hop(ask.provider, ask.evidence_sha256)
  if (hop === undefined) {
    throw new LinkError('unknown_evidence', 'no such evidence was verified for this provider')
  }
  return hop
}

function buildClaims(
  { claims }: Ask,
  router: RouterHop,
  inference: AttestationBlock,
  kid: string,
): ReceiptClaims {
  return {
    ...claims,
    router_attestation: router.block,
    inference_attestation: inference,
    receipt_signature: {
      kid,
      alg: 'ES256',
      verified: router.block.verified,
      verification_mode: ROUTER_VERIFICATION_MODE,
      verified_at: router.block.verified_at ?? claims.iat,
    },
  }
}

/** The hop, with what the provider's own signature proves of this exchange where it signs such. */
async function withMessage(
  { claims, provider, provider_response_id: responseId, upstream_model: upstreamModel }: Ask,
  { block, messageKey: key }: ProvenHop,
  { proveMessage }: SignerTools,
): Promise<AttestationBlock> {
  if (key === undefined) return block
  const { request_digest: requestDigest, response_digest: responseDigest } = claims
  const message = { provider, key, responseId, upstreamModel, requestDigest, responseDigest }
  return { ...block, message_attestation: await proveMessage(message) }
}

function sign(claims: ReceiptClaims, { kid, privateKey }: ReceiptKey): Promise<string> {
  const payload = utf8(JSON.stringify(claims))
  return signCompactJws(payload, { kid, typ: RECEIPT_TYP, privateKey })
}
