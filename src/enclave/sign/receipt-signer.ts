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
  readonly proofs: ProviderProofs
  /** Undefined until a first envelope was captured. */
  readonly routerHop: () => RouterHop | undefined
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
      jws: await sign(buildClaims(ask, router, inference, tools.key.kid), tools.key),
      evidence_refs: [...new Set([...router.evidenceRefs, ...inference.evidenceRefs])],
    })),
  )
  return { kid: tools.key.kid, receipts }
}

function describe(error: z.ZodError): string {
  const path = error.issues[0]?.path.join('.')
  return `claims of the wrong form at ${path || 'the top'}`
}

function findHop(ask: Ask, proofs: ProviderProofs): ProvenHop {
  const hop = proofs.hop(ask.provider, ask.evidence_sha256)
  if (hop === undefined) {
    throw new LinkError('unknown_evidence', 'no such evidence was verified for this provider')
  }
  return hop
}

function buildClaims(
  { claims, message_attestation: message }: Ask,
  router: RouterHop,
  inference: ProvenHop,
  kid: string,
): ReceiptClaims {
  return {
    ...claims,
    router_attestation: router.block,
    inference_attestation: withMessage(inference.block, message),
    receipt_signature: {
      kid,
      alg: 'ES256',
      verified: router.block.verified,
      verification_mode: ROUTER_VERIFICATION_MODE,
      verified_at: router.block.verified_at ?? claims.iat,
    },
  }
}

function withMessage(
  block: AttestationBlock,
  message: Ask['message_attestation'],
): AttestationBlock {
  return message === undefined ? block : { ...block, message_attestation: message }
}

function sign(claims: ReceiptClaims, { kid, privateKey }: ReceiptKey): Promise<string> {
  const payload = utf8(JSON.stringify(claims))
  return signCompactJws(payload, { kid, typ: RECEIPT_TYP, privateKey })
}
