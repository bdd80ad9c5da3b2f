import * as z from 'zod'
import { hex32 } from '../protocol/hex-schema.ts'
import { fromBase64, type Bytes } from '../protocol/bytes.ts'
import { parseCompactJws } from '../protocol/compact-jws.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'
import { readDocument } from '../protocol/read-document.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'

const HOPS = ['router_attestation', 'inference_attestation', 'provider_attestation'] as const

const claimsSchema = z.looseObject({ jti: z.string() })
const hopSchema = z.looseObject({
  evidence_raw: z.looseObject({ sha256: hex32 }),
})
const listSchema = z.object({
  evidence: z.array(z.object({ sha256: z.string(), data_b64: z.string() })),
})

/** The references of an unverified receipt: its id, and the SHA-256 (hex) of each piece of evidence. */
export interface EvidenceReferences {
  readonly id: string
  readonly references: readonly string[]
}

/**
 * Reads references from a receipt that is not verified yet; only digests are taken from it. A receipt that cannot be
 * parsed has no references; `verifyReceipt` reports what is wrong with it.
 */
export function evidenceReferences(receipt: string): EvidenceReferences {
  const claims = claimsSchema.safeParse(readUnverified(receipt))
  if (!claims.success) return { id: '', references: [] }
  const references = HOPS.flatMap((name) => {
    const hop = hopSchema.safeParse(claims.data[name])
    return hop.success ? [hop.data.evidence_raw.sha256] : []
  })
  return { id: claims.data.jti, references }
}

function readUnverified(receipt: string): unknown {
  try {
    return parseStrictJson(parseCompactJws(receipt, 'receipt').payload, 'receipt')
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}

/**
 * Reads the pieces of `GET /v1/receipts/{id}/evidence` by the digests that the router states; `verifyReceipt` checks
 * them.
 * @throws MalformedEvidence when it is not a list of evidence
 */
export function readEvidenceList(text: string | Uint8Array): ReadonlyMap<string, Bytes> {
  const document = 'list of evidence'
  const { evidence } = readDocument(listSchema, parseStrictJson(text, document), document)
  try {
    return new Map(evidence.map(({ sha256, data_b64: data }) => [sha256, fromBase64(data)]))
  } catch {
    throw new MalformedEvidence(document, 'not standard base64')
  }
}
