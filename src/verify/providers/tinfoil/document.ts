import type { Bytes } from '../../../protocol/bytes.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import type { TinfoilDocument } from './evidence.ts'
import { isTinfoilV2, readTinfoilV2 } from './v2.ts'
import { readTinfoilV3 } from './v3.ts'

/**
 * Parses a document that was requested with this nonce. A host that only supports version 2 answers with that version.
 * @throws MalformedEvidence when the document cannot be parsed
 * @throws EvidenceRefused when it is not bound to the nonce, or too large
 */
export async function readTinfoilDocument(
  text: string | Bytes,
  nonce: string,
): Promise<TinfoilDocument> {
  const json = parseStrictJson(text, 'Tinfoil document')
  return isTinfoilV2(json) ? readTinfoilV2(json) : readTinfoilV3(json, nonce)
}
