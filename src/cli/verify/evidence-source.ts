import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { staysPrivate } from '../../protocol/loopback.ts'
import { MalformedEvidence } from '../../protocol/malformed-evidence.ts'
import { evidenceReferences, readEvidenceList } from '../../verify/evidence-references.ts'
import { InputError } from './input-error.ts'
import { readInput } from './read-input.ts'
import type { RouterClient } from './router-client.ts'

/** Evidence by its SHA-256 in hex. The verifier compares it with the digests that the receipt names. */
export type EvidenceMap = Map<string, Bytes>

/** Evidence from files: the answer of `GET /v1/receipts/{id}/evidence`, or a single piece. */
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
 * Fetches the evidence that the receipt refers to from the router: envelopes are public, the rest only the customer may
 * read. Evidence that cannot be fetched stays absent. The receipt is not verified yet, so only digests and the id are
 * taken from it.
 * @throws InputError when the API key would be needed but the connection is plain HTTP, over which the network could
 *   read it
 */
export async function fetchEvidence(
  client: RouterClient,
  receipt: string,
  apiKey: string | undefined,
): Promise<EvidenceMap> {
  const evidence: EvidenceMap = new Map()
  const { id, references } = evidenceReferences(receipt)
  for (const sha256 of references) {
    const answer = await client.get(`/attestation/${sha256}`)
    if (answer.status === 200) evidence.set(sha256, copyBytes(answer.body))
  }
  if (apiKey !== undefined && references.some((sha256) => !evidence.has(sha256))) {
    requirePrivate(client.base)
    const headers = { authorization: `Bearer ${apiKey}` }
    const answer = await client.get(`/v1/receipts/${encodeURIComponent(id)}/evidence`, headers)
    if (answer.status === 200) addList(evidence, copyBytes(answer.body))
  }
  return evidence
}

function requirePrivate(base: URL): void {
  if (staysPrivate(base)) return
  throw new InputError(
    `CMR_API_KEY is not sent to ${base.origin} in the clear: give an https address, or --evidence from a file`,
  )
}

function addList(evidence: EvidenceMap, bytes: Bytes): void {
  try {
    for (const [sha256, piece] of readEvidenceList(bytes)) evidence.set(sha256, piece)
  } catch (error) {
    // Not a list: the file itself is the evidence.
    if (!(error instanceof MalformedEvidence)) throw error
  }
}
