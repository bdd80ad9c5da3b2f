import { concatBytes } from '../../protocol/bytes.ts'
import { hidesFrames } from './hidden-frames.ts'

/** The audio data of a WAV file and its format, from the file's chunks (RIFF, "Multimedia Programming Interface", 1991). */
export interface WavAudio {
  readonly bytes: number
  /** For uncompressed audio; undefined for other or unknown formats, and where the chunks contradict each other. */
  readonly bitsPerSecond: number | undefined
}

/** Format tags of audio in which every sample has as many bits as the format states: PCM and float. */
const UNCOMPRESSED: ReadonlySet<number> = new Set([1, 3])

/** Format tags of A-law and mu-law: decoders use a byte for each sample, whatever the format states. */
const BYTE_SAMPLES: ReadonlySet<number> = new Set([6, 7])

/** The tag of the extensible format, which has the audio's own tag at a later offset. */
const EXTENSIBLE = 0xfffe
const EXTENSIBLE_BYTES = 40
const EXTENDED_TAG = 24
const VALID_BITS = 18
const STATED_BITS = 14

/** The limits up to which decoders accept a format. */
const MAX_RATE = 192_000
const MAX_CHANNELS = 8
const MAX_BITS = 32

/** Maximum number of chunks, more than any known program writes. */
const MAX_CHUNKS = 64

/**
 * How much of the audio may decide how a decoder interprets it, bytes: FFmpeg looks at two and a half million bytes, and
 * reads all audio chunks as one stream.
 */
const PROBED_BYTES = 3 * 1024 * 1024

const HEADER_BYTES = 8
const RIFF_BYTES = 12
const FORMAT_BYTES = 16

/**
 * Reads the chunks. Audio of unknown or impossible length extends to the end of the file, as decoders treat it. Several
 * formats, too many chunks, and frames in place of samples leave the bit rate undefined, because decoders differ on the
 * first, read any number of chunks, and decode such frames. Zeros with which some programs pad a file are not chunks.
 */
export function readWav(file: Uint8Array): WavAudio {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const formats = new Set<number | undefined>()
  const heads: Uint8Array[] = []
  let at = RIFF_BYTES
  let bytes = 0
  let probed = 0
  let chunks = 0
  while (chunks < MAX_CHUNKS && at + HEADER_BYTES <= file.length) {
    if (view.getUint32(at) === 0 && view.getUint32(at + 4) === 0) {
      at += HEADER_BYTES
      continue
    }
    chunks++
    const id = String.fromCharCode(...file.subarray(at, at + 4))
    const size = view.getUint32(at + 4, true)
    const left = file.length - at - HEADER_BYTES
    if (id === 'fmt ') formats.add(rateOf(view, at + HEADER_BYTES, Math.min(size, left)))
    const toEnd = id === 'data' && (size === 0 || size > left)
    if (id === 'data') {
      const audio = toEnd ? left : size
      const start = at + HEADER_BYTES
      const head = Math.min(audio, PROBED_BYTES - probed)
      bytes += audio
      probed += head
      heads.push(file.subarray(start, start + head))
    }
    at = toEnd ? file.length : at + HEADER_BYTES + size + (size % 2)
  }
  const isRead = at + HEADER_BYTES > file.length
  const isPlain = formats.size === 1 && isRead && !hidesFrames(joined(heads))
  const [bitsPerSecond] = isPlain ? formats : []
  return { bytes, bitsPerSecond }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array(), ...more] = parts
  return more.length === 0 ? first : concatBytes(first, ...more)
}

/** The duration in seconds, where every second has the same number of bits. */
export function uncompressedSeconds({ bytes, bitsPerSecond }: WavAudio): number | undefined {
  return bitsPerSecond === undefined ? undefined : (8 * bytes) / bitsPerSecond
}

function rateOf(view: DataView, at: number, size: number): number | undefined {
  if (size < FORMAT_BYTES) return undefined
  const stated = view.getUint16(at, true)
  const isExtended = stated === EXTENSIBLE && size >= EXTENSIBLE_BYTES
  const tag = isExtended ? view.getUint16(at + EXTENDED_TAG, true) : stated
  const channels = Math.min(view.getUint16(at + 2, true), MAX_CHANNELS)
  const rate = Math.min(view.getUint32(at + 4, true), MAX_RATE)
  const bits = BYTE_SAMPLES.has(tag)
    ? 8
    : Math.min(view.getUint16(at + STATED_BITS, true), MAX_BITS)
  const total = channels * rate * bits
  const isExact =
    (UNCOMPRESSED.has(tag) || BYTE_SAMPLES.has(tag)) && !(isExtended && isOtherSize(view, at))
  return isExact && total > 0 ? total : undefined
}

/**
 * Whether a sample's valid bits need another number of bytes than its stated bits: FFmpeg then uses the valid bits as the
 * size.
 */
function isOtherSize(view: DataView, at: number): boolean {
  const valid = view.getUint16(at + VALID_BITS, true)
  const stated = view.getUint16(at + STATED_BITS, true)
  return valid !== 0 && Math.ceil(valid / 8) !== Math.ceil(stated / 8)
}
