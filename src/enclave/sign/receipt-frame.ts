import type { ExchangeClaims, ReceiptClaims } from '../../protocol/receipt.ts'
import type { ProvenHop } from '../proofs.ts'
import { ROUTER_VERIFICATION_MODE, type RouterHop } from './router-block.ts'

/** `typ` of the JWS header; prevents a manifest or a bundle from being accepted as a receipt. */
const RECEIPT_TYP = 'receipt+jwt'

/**
 * The common beginning of all receipts with the same two hops and key. It is nine tenths of a receipt, so it is
 * serialised and encoded once. It comes before the claims, because the base64url encoding of what follows depends on
 * its position.
 */
export interface ReceiptFrame {
  /** JWS header, dot and the first members of the payload, as far as they fill whole groups of base64url. */
  readonly head: Buffer
  /** The remaining characters of those members: at most two. */
  readonly rest: string
  /** Digests of evidence that the receipts refer to but do not contain, as JSON. */
  readonly evidenceRefs: string
}

/** Serialises the common part of receipts with these hops. */
export function frameReceipts(kid: string, router: RouterHop, inference: ProvenHop): ReceiptFrame {
  const common: Pick<
    ReceiptClaims,
    'configuration_sha256' | 'router_attestation' | 'inference_attestation' | 'receipt_signature'
  > = {
    configuration_sha256: router.configurationSha256,
    router_attestation: router.block,
    inference_attestation: inference.block,
    receipt_signature: {
      kid,
      alg: 'ES256',
      verified: router.block.verified,
      verification_mode: ROUTER_VERIFICATION_MODE,
      verified_at: router.block.verified_at,
    },
  }
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid, typ: RECEIPT_TYP }))
  const members = Buffer.from(`${JSON.stringify(common).slice(0, -1)},`)
  const whole = members.length - (members.length % 3)
  return {
    head: Buffer.from(`${header.toString('base64url')}.${members.toString('base64url', 0, whole)}`),
    rest: members.toString('latin1', whole),
    evidenceRefs: JSON.stringify([...new Set([...router.evidenceRefs, ...inference.evidenceRefs])]),
  }
}

/** The rest of the JWS signing input, after the frame's head, of a receipt with these claims. */
export function encodeClaims(claims: ExchangeClaims, { rest }: ReceiptFrame): string {
  return Buffer.from(`${rest}${JSON.stringify(claims).slice(1)}`).toString('base64url')
}

/** Finds or creates the frame of two hops; it lives no longer than either of them. */
export function createFrames(
  kid: string,
): (router: RouterHop, inference: ProvenHop) => ReceiptFrame {
  const byRouter = new WeakMap<RouterHop, WeakMap<ProvenHop, ReceiptFrame>>()
  return (router, inference) => {
    const frames = byRouter.get(router) ?? new WeakMap<ProvenHop, ReceiptFrame>()
    byRouter.set(router, frames)
    const frame = frames.get(inference) ?? frameReceipts(kid, router, inference)
    frames.set(inference, frame)
    return frame
  }
}
