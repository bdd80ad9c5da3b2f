import { createHash, type Hash } from 'node:crypto'
import type { ReceiptHead } from '../../protocol/link.ts'
import type { AttestationBlock, ExchangeClaims, ReceiptClaims } from '../../protocol/receipt.ts'
import type { ProvenHop } from '../proofs.ts'
import { ROUTER_VERIFICATION_MODE, type RouterHop } from './router-block.ts'

/** `typ` of the JWS header; prevents a manifest or a bundle from being accepted as a receipt. */
const RECEIPT_TYP = 'receipt+jwt'

/** The parts of a receipt that belong to one exchange: its claims, and what its provider signed. */
export interface OwnClaims {
  readonly claims: ExchangeClaims
  /** Present for a provider that signs its messages. */
  readonly message?: AttestationBlock['message_attestation']
}

/**
 * The common beginning of all receipts with the same two hops and key. It is nine tenths of a receipt, so it is
 * serialised, encoded, sent and stored once. It comes before the claims, because the base64url encoding of everything
 * after it depends on its position. Nothing in it belongs to a single exchange, so erasing the part after it erases the
 * receipt.
 */
export interface ReceiptFrame {
  /** JWS header, dot and the common members of the payload, up to the last whole group of base64url (3 bytes). */
  readonly head: ReceiptHead
  /** The bytes of the head. */
  readonly bytes: Buffer
  /** The state of SHA-256 after the head. Copy it before use. */
  readonly hashed: Hash
  /** The remaining characters of the common members: at most two. */
  readonly rest: string
}

/** Serialises the common part of receipts with these hops. */
export function frameReceipts(kid: string, router: RouterHop, inference: ProvenHop): ReceiptFrame {
  // The provider's hop comes last, because what the provider signed of an exchange becomes a member of it.
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

/** Encodes the rest of the JWS signing input, after the frame's head, of a receipt with these claims. */
export function encodeClaims({ claims, message }: OwnClaims, { rest }: ReceiptFrame): string {
  const signed = message === undefined ? '' : `,"message_attestation":${JSON.stringify(message)}`
  return Buffer.from(`${rest}${signed}},${JSON.stringify(claims).slice(1)}`).toString('base64url')
}

/** Finds or creates the frame of two hops. A frame is kept no longer than either of its hops. */
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
