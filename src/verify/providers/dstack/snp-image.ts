import * as z from 'zod'
import { copyBytes, equalBytes, toHex, type Bytes } from '../../../protocol/bytes.ts'
import { readDocument } from '../../../protocol/read-document.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import { cpuSignature } from '../../launch/cpu-signature.ts'
import { readSection } from '../../launch/firmware.ts'
import { finishLaunchDigest } from '../../launch/launch-digest.ts'
import { LaunchError } from '../../launch/launch-error.ts'
import { readImageMeasurement } from './os-image.ts'
import type { SnpLaunch } from './vm-config.ts'

const bytesOf = (length: number) =>
  z.instanceof(Uint8Array).refine((bytes) => bytes.length === length, `not ${length} bytes`)
const address = z.int().min(0).max(0xffff_ffff)

/** `measurement.snp.cbor` (dstack, `SevOsImageMeasurement`). */
const snpImageSchema = z.strictObject({
  version: z.literal(3),
  cmdline: z.string(),
  /** The launch digest of the firmware's volume alone. */
  ovmf_hash: bytesOf(48),
  kernel_hash: bytesOf(32),
  initrd_hash: bytesOf(32),
  hashes_table_gpa: address,
  reset_eip: address,
  ovmf_sections: z
    .array(z.strictObject({ gpa: address, size: z.int().min(1).max(16_777_216), type: z.int() }))
    .min(1)
    .max(64),
})

/** SEV_FEATURES: SNPActive, which a guest must have, and DebugSwap, which it may. */
const SNP_ACTIVE = 0x1
const ACCEPTED_FEATURES = 0x21

/**
 * Finds the OS release that a guest under SEV-SNP was started from, where it is a pinned one: firmware, kernel, initrd
 * and command line of the release, with the processors that the machine states, must yield the measured launch digest.
 * @returns the hash of the release
 * @throws EvidenceRefused `measurement` (`os_image_hash`, `os_image_files`, `guest_features`, `os_image_launch`)
 * @throws MalformedEvidence when the release's files cannot be read
 */
export async function requireSnpImage(
  measured: Bytes,
  launch: SnpLaunch | undefined,
  allowed: readonly string[],
): Promise<string> {
  const { osImageHash, content } = await readImageMeasurement(
    launch,
    'measurement.snp.cbor',
    allowed,
  )
  if (launch === undefined) throw new EvidenceRefused('measurement', ['os_image_files'])
  const image = readDocument(snpImageSchema, content, 'dstack OS image')
  if (!acceptsFeatures(launch.guest_features)) {
    throw new EvidenceRefused('measurement', ['guest_features'])
  }
  const digest = await launchDigest(image, launch)
  if (!equalBytes(digest, measured)) throw new EvidenceRefused('measurement', ['os_image_launch'])
  return osImageHash
}

function acceptsFeatures(features: number): boolean {
  const unknown = features - (features & ACCEPTED_FEATURES)
  return unknown === 0 && (features & SNP_ACTIVE) !== 0
}

async function launchDigest(
  image: z.output<typeof snpImageSchema>,
  launch: SnpLaunch,
): Promise<Bytes> {
  try {
    const firmware = {
      sections: image.ovmf_sections.map(({ gpa, size, type }) => readSection(gpa, size, type)),
      resetAddress: image.reset_eip || undefined,
      hashesTableAddress: image.hashes_table_gpa || undefined,
    }
    return await finishLaunchDigest(copyBytes(image.ovmf_hash), firmware, {
      kernel: {
        kernelSha256: toHex(image.kernel_hash),
        initrdSha256: toHex(image.initrd_hash),
        commandLine: image.cmdline.trim(),
      },
      processors: launch.vcpus,
      cpuSignature: cpuSignature(launch.vcpu_type),
      guestFeatures: BigInt(launch.guest_features),
    })
  } catch (error) {
    if (!(error instanceof LaunchError)) throw error
    throw new EvidenceRefused('measurement', ['os_image_launch'], { cause: error })
  }
}
