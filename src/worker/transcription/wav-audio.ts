/** The audio data of a WAV file and its format, from the file's chunks (RIFF, "Multimedia Programming Interface", 1991). */
export interface WavAudio {
  readonly bytes: number
  /** For uncompressed audio; undefined for other or unknown formats. */
  readonly bitsPerSecond: number | undefined
}

/** Format tags of audio in which every sample has the same number of bits: PCM, float, A-law, mu-law, extensible. */
const UNCOMPRESSED: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe])

/** Limits within which decoders accept a format. */
const MAX_RATE = 192_000
const MAX_CHANNELS = 8
const MAX_BITS = 32

/** Maximum number of chunks before the audio: more than any known program writes. */
const MAX_CHUNKS = 64
const HEADER_BYTES = 8
const RIFF_BYTES = 12
const FORMAT_BYTES = 16

/** Reads the chunks. Audio of unknown or impossible length extends to the end of the file, as decoders treat it. */
export function readWav(file: Uint8Array): WavAudio {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  let at = RIFF_BYTES
  let bytes = 0
  let bitsPerSecond: number | undefined
  for (let chunk = 0; chunk < MAX_CHUNKS && at + HEADER_BYTES <= file.length; chunk++) {
    const id = String.fromCharCode(...file.subarray(at, at + 4))
    const size = view.getUint32(at + 4, true)
    const left = file.length - at - HEADER_BYTES
    if (id === 'fmt ' && left >= FORMAT_BYTES) bitsPerSecond = rateOf(view, at + HEADER_BYTES)
    if (id === 'data') bytes += size === 0 || size > left ? left : size
    at += HEADER_BYTES + size + (size % 2)
  }
  return { bytes, bitsPerSecond }
}

/** The duration, where every second has the same number of bits. */
export function uncompressedSeconds({ bytes, bitsPerSecond }: WavAudio): number | undefined {
  return bitsPerSecond === undefined ? undefined : (8 * bytes) / bitsPerSecond
}

function rateOf(view: DataView, at: number): number | undefined {
  const tag = view.getUint16(at, true)
  const channels = Math.min(view.getUint16(at + 2, true), MAX_CHANNELS)
  const rate = Math.min(view.getUint32(at + 4, true), MAX_RATE)
  const bits = Math.min(view.getUint16(at + 14, true), MAX_BITS)
  const total = channels * rate * bits
  return UNCOMPRESSED.has(tag) && total > 0 ? total : undefined
}
