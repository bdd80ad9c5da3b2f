import { z } from 'zod'
import { copyBytes, fromBase64, type Bytes } from '../../protocol/bytes.ts'
import { parseCompactJws } from '../../protocol/compact-jws.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { readInput } from './read-input.ts'
import type { RouterClient } from './router-client.ts'

/** Evidence by SHA-256 in hex. That it is what the receipt names is for the library to check. */
export type EvidenceMap = Map<string, Bytes>

const listSchema = z.object({
  evidence: z.array(z.object({ sha256: z.string(), data_b64: z.string() })),
})

const hopSchema = z.object({ evidence_raw: z.object({ sha256: z.string() }) })

const claimsSchema = z.object({
  jti: z.string(),
  router_attestation: z.unknown().optional(),
  inference_attestation: z.unknown().optional(),
  provider_attestation: z.unknown().optional(),
})

/** Evidence from files: the answer of `GET /v1/receipts/{id}/evidence`, or one piece of it as it is. */
export async function readEvidenceFiles(paths: readonly string[]): Promise<EvidenceMap> {
  const evidence: EvidenceMap = new Map()
  for (const path of paths) {
    const bytes = await readInput(path)
    evidence.set(await sha256Hex(bytes), bytes)
    addList(evidence, bytes)
  }
  return evidence
}

/**
 * Asks the router for what the receipt refers to: envelopes are public, the rest is the customer's. What cannot be had
 * stays absent. The receipt is not verified yet, so nothing but digests is taken from it.
 */
export async function fetchEvidence(
  client: RouterClient,
  receipt: string,
  apiKey: string | undefined,
): Promise<EvidenceMap> {
  const evidence: EvidenceMap = new Map()
  const { id, references } = referencesOf(receipt)
  for (const sha256 of references) {
    const answer = await client.get(`/attestation/${sha256}`)
    if (answer.status === 200) evidence.set(sha256, copyBytes(answer.body))
  }
  if (apiKey !== undefined && references.some((sha256) => !evidence.has(sha256))) {
    const headers = { authorization: `Bearer ${apiKey}` }
    const answer = await client.get(`/v1/receipts/${encodeURIComponent(id)}/evidence`, headers)
    if (answer.status === 200) addList(evidence, copyBytes(answer.body))
  }
  return evidence
}

/** A receipt that cannot be read refers to nothing; the library says what is wrong with it. */
function referencesOf(receipt: string): { id: string; references: string[] } {
  const claims = claimsSchema.safeParse(readUnverified(receipt))
  if (!claims.success) return { id: '', references: [] }
  const { jti, ...hops } = claims.data
  const references = Object.values(hops).flatMap((hop) => {
    const reference = hopSchema.safeParse(hop)
    return reference.success ? [reference.data.evidence_raw.sha256] : []
  })
  return { id: jti, references: references.filter((sha256) => /^[0-9a-f]{64}$/.test(sha256)) }
}

function readUnverified(receipt: string): unknown {
  try {
    return parseStrictJson(parseCompactJws(receipt, 'receipt').payload, 'receipt')
  } catch {
    return undefined
  }
}

function addList(evidence: EvidenceMap, bytes: Bytes): void {
  try {
    const list = listSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
    for (const { sha256, data_b64: data } of list.evidence) evidence.set(sha256, fromBase64(data))
  } catch {
    // Not a list: it stands for itself.
  }
}
