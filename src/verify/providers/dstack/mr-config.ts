import * as z from 'zod'
import { concatBytes, utf8, type Bytes } from '../../../protocol/bytes.ts'
import { sha256 } from '../../../protocol/digest.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'

const DOCUMENT_LABEL = 'dstack-mr-config-v3:'

/**
 * Computes the digest of a guest's configuration document (dstack, `MrConfigV3`). It is HOST_DATA, and follows the byte
 * 03 in MRCONFIGID.
 */
export function digestMrConfig(text: string): Promise<Bytes> {
  return sha256(concatBytes(utf8(DOCUMENT_LABEL), Uint8Array.of(0), utf8(text)))
}

const hexText = z.string().regex(/^([0-9a-f]{2})*$/)

const mrConfigSchema = z.strictObject({
  version: z.literal(3).default(3),
  compose_hash: hexText,
  app_id: hexText.nullish(),
  instance_id: hexText.nullish(),
  gpu_policy_hash: hexText.nullish(),
  key_provider: z.string(),
  key_provider_id: hexText.nullish(),
  init_script_hashes: z.array(hexText).nullish(),
})
export type MrConfig = z.output<typeof mrConfigSchema>

/** Parses a configuration document; undefined where the text is not one. */
export function readMrConfig(text: string): MrConfig | undefined {
  try {
    return mrConfigSchema.safeParse(parseStrictJson(text, 'dstack configuration')).data
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}
