import type { Container } from './audio-type.ts'
import { readWav, uncompressedSeconds } from './wav-audio.ts'

/**
 * Bounds of a file's duration from its size (docs/transcription.md, "Billing"). A header may state a false duration,
 * but each codec has a minimum and a maximum bit rate.
 */

/** The audio format that a file states, as far as it is known. */
export interface AudioFormat {
  readonly sampleRate?: number | undefined
  readonly numberOfChannels?: number | undefined
  readonly bitsPerSample?: number | undefined
  readonly lossless?: boolean | undefined
  readonly hasVideo?: boolean | undefined
}

/** The lowest bit rates of the codecs in each container, bits per second; Opus goes down to 6,000. */
const MIN_BITS_PER_SECOND: Readonly<Record<Container, number>> = {
  flac: 6_000,
  mp4: 6_000,
  mpeg: 8_000,
  ogg: 6_000,
  wav: 6_000,
  webm: 6_000,
}

/**
 * The bit rate of silence in FLAC: a frame of 13 bytes for 65,535 samples at 8 kHz. A header that states a longer duration
 * is damaged.
 */
const SILENT_BITS_PER_SECOND = 12

/** Minimum of the upper bound, s: silence takes almost no bits, so a small file may be longer than the bit rates imply. */
const MIN_UPPER_BOUND_SECONDS = 60

/** Providers round up. */
const ROUNDING_SECONDS = 1

/** The highest bit rates of the lossy codecs in each container, all channels together, bits per second. */
const MAX_BITS_PER_SECOND: Readonly<Record<Container, number>> = {
  flac: 1_536_000,
  mp4: 1_536_000,
  mpeg: 384_000,
  ogg: 512_000,
  wav: 1_536_000,
  webm: 512_000,
}

/** Assumed for a lossless file that does not state its format: two channels of 24 bits at 192 kHz. */
const LOSSLESS_BITS_PER_SECOND = 9_216_000
const VIDEO_BITS_PER_SECOND = 50_000_000

const MAX_RATE = 192_000
const MAX_CHANNELS = 8
const MAX_BITS = 32

/**
 * A lossless encoder may slightly enlarge incompressible audio; the minimum duration must not exceed that of such a file.
 */
const SIZE_TOLERANCE = 0.95
const ROUNDING = 1e-6

/**
 * Maximum duration of a file, s: the amount reserved for it, and the most that it can be billed.
 * @param stated the duration that its header states, s; it counts only as far as silence can be that long
 */
export function maxSeconds(file: Uint8Array, container: Container, stated = 0): number {
  const exact = container === 'wav' ? uncompressedSeconds(readWav(file)) : undefined
  if (exact !== undefined) return exact + ROUNDING_SECONDS
  const bits = 8 * file.length
  return Math.max(
    MIN_UPPER_BOUND_SECONDS,
    bits / MIN_BITS_PER_SECOND[container],
    Math.min(stated + ROUNDING_SECONDS, bits / SILENT_BITS_PER_SECOND),
  )
}

/** Minimum duration of a file in this format, s. */
export function minSeconds(file: Uint8Array, container: Container, format: AudioFormat): number {
  const exact = container === 'wav' ? uncompressedSeconds(readWav(file)) : undefined
  if (exact !== undefined) return exact * (1 - ROUNDING)
  const bits = 8 * (file.length - tagBytes(file, container))
  return (bits / highestRate(container, format)) * SIZE_TOLERANCE
}

function highestRate(container: Container, format: AudioFormat): number {
  if (format.hasVideo) return VIDEO_BITS_PER_SECOND
  if (container !== 'flac' && !format.lossless) return MAX_BITS_PER_SECOND[container]
  const { sampleRate = 0, numberOfChannels = 0, bitsPerSample = 0 } = format
  const reported =
    Math.min(sampleRate, MAX_RATE) *
    Math.min(numberOfChannels, MAX_CHANNELS) *
    Math.min(bitsPerSample, MAX_BITS)
  return reported > 0 ? reported : LOSSLESS_BITS_PER_SECOND
}

/** Bytes before the audio that contain names and pictures. */
function tagBytes(file: Uint8Array, container: Container): number {
  const tagged = container === 'flac' ? flacMetadata(file) : id3Tag(file)
  return Math.min(tagged, file.length)
}

const ID3_HEADER_BYTES = 10

/** The length of an ID3v2 tag at the beginning, 0 without one (section 3.1: the size has four times seven bits). */
export function id3Tag(file: Uint8Array): number {
  if (String.fromCharCode(...file.subarray(0, 3)) !== 'ID3') return 0
  const size = file.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0)
  return ID3_HEADER_BYTES + size
}

export const FLAC_MARKER_BYTES = 4
const FLAC_BLOCK_HEADER_BYTES = 4

/** Maximum number of metadata blocks, more than any program writes; what follows them counts as sound. */
const MAX_FLAC_BLOCKS = 1_000

/** The length of the metadata blocks up to the one marked as the last (RFC 9639, section 8). */
function flacMetadata(file: Uint8Array): number {
  let at = FLAC_MARKER_BYTES
  for (let block = 0; block < MAX_FLAC_BLOCKS; block++) {
    if (at + FLAC_BLOCK_HEADER_BYTES > file.length) break
    const [kind = 0, ...size] = file.subarray(at, at + FLAC_BLOCK_HEADER_BYTES)
    at += FLAC_BLOCK_HEADER_BYTES + size.reduce((sum, byte) => sum * 256 + byte, 0)
    if (kind >= 0x80) break
  }
  return at
}
