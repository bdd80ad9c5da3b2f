import type { Bytes } from '../../../protocol/bytes.ts'
import { FLAC_MARKER_BYTES } from '../seconds-bounds.ts'

/**
 * The header of the first metadata block, which states the format and the number of samples (RFC 9639, sections 8.1 and
 * 8.2).
 */
const BLOCK_HEADER = [0, 0, 0, 34] as const
const BLOCK_BYTES = 34
const OUTLINE_BYTES = FLAC_MARKER_BYTES + BLOCK_HEADER.length + BLOCK_BYTES
const LAST_BLOCK = 0x80

/** A FLAC file with only the first metadata block; empty where another block comes first. */
export function flacOutline(flac: Bytes): Bytes {
  const header = flac.subarray(FLAC_MARKER_BYTES, FLAC_MARKER_BYTES + BLOCK_HEADER.length)
  const [kind = LAST_BLOCK, ...length] = header
  const begins = [kind & ~LAST_BLOCK, ...length].every((byte, at) => byte === BLOCK_HEADER[at])
  if (!begins || length.length < BLOCK_HEADER.length - 1) return new Uint8Array()
  const outline = flac.slice(0, OUTLINE_BYTES)
  outline[FLAC_MARKER_BYTES] = LAST_BLOCK
  return outline
}
