import * as z from 'zod'
import { readDocument } from '../../../protocol/read-document.ts'
import { parseStrictJson } from '../../../protocol/strict-json.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'

const NAME = 'dstack machine configuration'

const base64Text = z.base64()

/**
 * A release's list of files (`sha256sum.txt`), and the file in it that describes the release's measurement, both in
 * base64.
 */
const imageFilesSchema = z.looseObject({ checksum_file: base64Text, measurement: base64Text })
export type ImageFiles = z.output<typeof imageFilesSchema>

const snpLaunchSchema = imageFilesSchema.extend({
  vcpus: z.int().min(1).max(512),
  vcpu_type: z.string(),
  /** SEV_FEATURES. */
  guest_features: z.int().min(0),
})
export type SnpLaunch = z.output<typeof snpLaunchSchema>

const vmConfigSchema = z.looseObject({
  mr_config: z.string().nullish(),
  /** Bytes. */
  memory_size: z.int().min(0).nullish().catch(undefined),
  tdx_measurement: imageFilesSchema.nullish().catch(undefined),
  /** JSON in a string. */
  sev_snp_measurement: z.string().nullish(),
})

/** What a machine was started with, as it states itself. Nothing of it is verified. */
export interface VmConfig {
  /** The document whose digest is HOST_DATA, or MRCONFIGID in its third form. */
  readonly mrConfig: string | undefined
  readonly memoryBytes: number | undefined
  /** Since dstack 0.6. */
  readonly tdxImage: ImageFiles | undefined
  readonly snpLaunch: SnpLaunch | undefined
}

const NO_CONFIG: VmConfig = {
  mrConfig: undefined,
  memoryBytes: undefined,
  tdxImage: undefined,
  snpLaunch: undefined,
}

/**
 * Reads a machine's configuration, JSON or JSON in a string. Members in another form than dstack's current one count as
 * absent, which is safe because absent members prove nothing.
 * @throws MalformedEvidence when the configuration itself cannot be read
 */
export function readVmConfig(json: unknown): VmConfig {
  if (json === undefined || json === null || json === '') return NO_CONFIG
  const config = readDocument(
    vmConfigSchema,
    typeof json === 'string' ? parseStrictJson(json, NAME) : json,
    NAME,
  )
  return {
    mrConfig: config.mr_config ?? undefined,
    memoryBytes: config.memory_size ?? undefined,
    tdxImage: config.tdx_measurement ?? undefined,
    snpLaunch: readSnpLaunch(config.sev_snp_measurement ?? undefined),
  }
}

function readSnpLaunch(text: string | undefined): SnpLaunch | undefined {
  if (text === undefined) return undefined
  try {
    return snpLaunchSchema.safeParse(parseStrictJson(text, NAME)).data
  } catch (error) {
    if (error instanceof MalformedEvidence) return undefined
    throw error
  }
}
