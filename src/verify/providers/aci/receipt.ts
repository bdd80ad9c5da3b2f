import * as z from 'zod'
import { canonicalJson } from '../../../protocol/canonical-json.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'

/**
 * A private gateway's receipt (ACI specification, section 7): a log of one request, with an ed25519 signature over its
 * canonical JSON without the signature.
 */
const receiptSchema = z.looseObject({
  api_version: z.literal('aci/1'),
  workload_keyset_digest: z.string(),
  event_log: z
    .array(z.looseObject({ type: z.string(), body_hash: z.string().optional() }))
    .min(1)
    .max(256),
})

const signedSchema = z.record(z.string(), z.json())

/** Splits a receipt into its signed text and the signature (hex); undefined where the value is not a receipt. */
export function splitAciReceipt(
  json: unknown,
): { readonly text: string; readonly signature: string } | undefined {
  const document = signedSchema.safeParse(json).data
  const signature = document?.['signature']
  if (document === undefined || typeof signature !== 'string') return undefined
  const rest = Object.entries(document).filter(([name]) => name !== 'signature')
  return { text: canonicalJson(Object.fromEntries(rest)), signature }
}

export interface AciExchange {
  /** Digest of the keyset that the evidence binds, `sha256:<hex>`. */
  readonly keyset: string
  /** SHA-256 of the exact bytes, lowercase hex. */
  readonly requestDigest: string
  readonly responseDigest: string
}

/**
 * Whether the signed text of a receipt is about this exchange: it names this keyset, begins with this request, and has
 * exactly one answer, which is this one. Never throws.
 */
export function isAciReceiptOf(
  text: string,
  { keyset, requestDigest, responseDigest }: AciExchange,
): boolean {
  const receipt = receiptSchema.safeParse(read(text)).data
  if (receipt?.workload_keyset_digest !== keyset) return false
  const hashes = (type: string) =>
    receipt.event_log.filter((event) => event.type === type).map((event) => event.body_hash)
  const [first] = receipt.event_log
  return (
    first?.type === 'request.received' &&
    isOnly(hashes('request.received'), `sha256:${requestDigest}`) &&
    isOnly(hashes('response.returned'), `sha256:${responseDigest}`)
  )
}

function isOnly(values: readonly unknown[], wanted: string): boolean {
  return values.length === 1 && values[0] === wanted
}

function read(text: string): unknown {
  try {
    return parseStrictJson(text, 'ACI receipt')
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}
