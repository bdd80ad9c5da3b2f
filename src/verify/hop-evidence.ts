import * as z from 'zod'
import { utf8, type Bytes } from '../protocol/bytes.ts'
import { sha256Hex } from '../protocol/digest.ts'
import type { AttestationBlock } from '../protocol/receipt.ts'
import { judge, type Check } from './check.ts'

/** Evidence that receipts refer to, by SHA-256 in lowercase hex. */
export type EvidenceBySha256 = ReadonlyMap<string, Bytes>

export interface FoundEvidence {
  readonly check: Check
  /** The signed JSON, or a document with the same value; present only where the check holds. */
  readonly bytes?: Bytes
}

const referenceSchema = z.strictObject({ sha256: z.string(), bytes: z.number() })

/**
 * Finds the evidence of a hop: contained in the block itself, or the unchanged piece that the block names by digest.
 */
export async function findEvidence(
  { evidence_raw: raw }: AttestationBlock,
  held: EvidenceBySha256,
): Promise<FoundEvidence> {
  if (raw === undefined) return missing('the receipt names no evidence')
  const reference = referenceSchema.safeParse(raw)
  if (!reference.success) {
    const check = judge('hop_evidence', undefined, 'in the receipt itself')
    return { check, bytes: utf8(JSON.stringify(raw)) }
  }
  const { sha256, bytes: size } = reference.data
  const bytes = held.get(sha256)
  if (bytes === undefined) return missing(`the evidence ${sha256} is not at hand`)
  if (bytes.length !== size || (await sha256Hex(bytes)) !== sha256) {
    return missing('not the bytes that were signed')
  }
  return { check: judge('hop_evidence', undefined, sha256), bytes }
}

function missing(fault: string): FoundEvidence {
  return { check: judge('hop_evidence', fault, '') }
}
