import { decode } from 'cborg'
import { fromBase64, type Bytes } from '../../../protocol/bytes.ts'
import { sha256Hex } from '../../../protocol/digest.ts'
import { MalformedEvidence } from '../../../protocol/malformed-evidence.ts'
import { readText } from '../../../protocol/read-document.ts'
import { EvidenceRefused } from '../../evidence-refused.ts'
import type { ImageFiles } from './vm-config.ts'

const NAME = 'dstack OS image'

/** A release's list names a dozen files, and the description of its measurement takes about 300 bytes. */
const MAX_BYTES = 65_536

/** What a release of the OS states about its own measurement. */
export interface ImageMeasurement {
  /** SHA-256 of the release's list of files, lowercase hex: what `allowed_os_image_hashes` pins. */
  readonly osImageHash: string
  /** Decoded from CBOR, not validated. */
  readonly content: unknown
}

/**
 * Reads the description of a release's measurement (`measurement.<tee>.cbor`). The release's list of files must name
 * it, and the list must be a pinned one.
 *
 * Source: dstack, `verify_measurement_material`.
 * @throws EvidenceRefused `measurement` (`os_image_hash`, `os_image_files`)
 * @throws MalformedEvidence when the list or the description cannot be read
 */
export async function readImageMeasurement(
  files: ImageFiles | undefined,
  fileName: string,
  allowed: readonly string[],
): Promise<ImageMeasurement> {
  if (files === undefined) throw new EvidenceRefused('measurement', ['os_image_files'])
  const list = decodeBase64(files.checksum_file)
  const osImageHash = await sha256Hex(list)
  if (!allowed.includes(osImageHash)) throw new EvidenceRefused('measurement', ['os_image_hash'])
  const measurement = decodeBase64(files.measurement)
  if ((await sha256Hex(measurement)) !== listedDigest(list, fileName)) {
    throw new EvidenceRefused('measurement', ['os_image_files'])
  }
  return { osImageHash, content: decodeCbor(measurement) }
}

/** The digest in the only line of `sha256sum` output for this file; undefined where there is not exactly one. */
function listedDigest(list: Bytes, fileName: string): string | undefined {
  const lines = readText(list, NAME).split('\n')
  const [found, ...more] = lines
    .map((line) => /^([0-9a-f]{64}) [ *](.+)$/.exec(line.trim()))
    .filter((line) => line?.[2] === fileName)
  return more.length > 0 ? undefined : found?.[1]
}

function decodeBase64(text: string): Bytes {
  if (text.length > MAX_BYTES) throw new EvidenceRefused('too_large')
  try {
    return fromBase64(text)
  } catch {
    throw new MalformedEvidence(NAME, 'not base64')
  }
}

function decodeCbor(bytes: Bytes): unknown {
  try {
    return decode(bytes, { strict: true, allowIndefinite: false, rejectDuplicateMapKeys: true })
  } catch {
    throw new MalformedEvidence(NAME, 'not CBOR')
  }
}
