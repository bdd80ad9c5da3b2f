import { createHash, type Hash } from 'node:crypto'
import type { ReceiptHead } from '../../protocol/link.ts'
import type { AttestationBlock, ExchangeClaims, ReceiptClaims } from '../../protocol/receipt.ts'
import type { ProvenHop } from '../proofs.ts'
import { ROUTER_VERIFICATION_MODE, type RouterHop } from './router-block.ts'

/** `typ` of the JWS header; prevents a manifest or a bundle from being accepted as a receipt. */
const RECEIPT_TYP = 'receipt+jwt'

/** What concerns one exchange alone: its claims, and what its provider signed. */
export interface OwnClaims {
  readonly claims: ExchangeClaims
  /** Of a provider that signs its messages. */
  readonly message?: AttestationBlock['message_attestation']
}

/**
 * The common beginning of all receipts with the same two hops and key. It is nine tenths of a receipt, so it is
 * serialised, encoded, sent and stored once. It comes before the claims, because the base64url encoding of what follows
 * depends on its position. Nothing in it concerns one exchange, so erasing what follows it erases a receipt.
 */
export interface ReceiptFrame {
  /** JWS header, dot and the common members of the payload, as far as they fill whole groups of base64url. */
  readonly head: ReceiptHead
  /** The bytes of the head. */
  readonly bytes: Buffer
  /** The state of SHA-256 after the head, to be copied. */
  readonly hashed: Hash
  /** The remaining characters of the common members: at most two. */
  readonly rest: string
}

/** Serialises the common part of receipts with these hops. */
export function frameReceipts(kid: string, router: RouterHop, inference: ProvenHop): ReceiptFrame {
  // The provider's hop comes last, because a message of one exchange is a member of it.
  const common: Pick<
    ReceiptClaims,
    'configuration_sha256' | 'router_attestation' | 'receipt_signature' | 'inference_attestation'
  > = {
    configuration_sha256: router.configurationSha256,
    router_attestation: router.block,
    receipt_signature: {
      kid,
      alg: 'ES256',
      verified: router.block.verified,
      verification_mode: ROUTER_VERIFICATION_MODE,
      verified_at: router.block.verified_at,
    },
    inference_attestation: inference.block,
  }
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid, typ: RECEIPT_TYP }))
  const members = Buffer.from(JSON.stringify(common).slice(0, -'}}'.length))
  const whole = members.length - (members.length % 3)
  const text = `${header.toString('base64url')}.${members.toString('base64url', 0, whole)}`
  const bytes = Buffer.from(text, 'latin1')
  const hashed = createHash('sha256').update(bytes)
  return {
    head: {
      sha256: hashed.copy().digest('hex'),
      text,
      evidence_refs: [...new Set([...router.evidenceRefs, ...inference.evidenceRefs])],
    },
    bytes,
    hashed,
    rest: members.toString('latin1', whole),
  }
}

/** The rest of the JWS signing input, after the frame's head, of a receipt with these claims. */
export function encodeClaims({ claims, message }: OwnClaims, { rest }: ReceiptFrame): string {
  const signed = message === undefined ? '' : `,"message_attestation":${JSON.stringify(message)}`
  return Buffer.from(`${rest}${signed}},${JSON.stringify(claims).slice(1)}`).toString('base64url')
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
