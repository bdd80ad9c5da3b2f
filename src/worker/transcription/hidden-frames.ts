/**
 * Frames of compressed audio in what a file calls samples. Decoders built on FFmpeg look for them, because some programs
 * store such audio in WAV files, and then decode the frames: these last many times as long as the samples would.
 */

/** FFmpeg decides by seven frames in a row; so many of one kind do not occur in samples by chance. */
const FRAMES_IN_ROW = 5

/**
 * The length of the frame that begins at a place, bytes; undefined where none does. `flip` is 1 where the bytes of a frame come
 * in pairs in reverse order, else 0.
 */
type FrameLength = (bytes: Uint8Array, at: number, flip: number) => number | undefined

/** Kilobits a second by the index in the header, for each layer of MPEG-1 and for the layers of MPEG-2. */
const RATES_1 = {
  1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
} as const
const RATES_2_LAYER_1 = [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256]
const RATES_2 = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]

const SAMPLE_RATES = [44_100, 48_000, 32_000]

/** Divides the sample rates, by the version in the header: 2.5, none, 2, 1. */
const RATE_DIVISORS = [4, 0, 2, 1]

/** ISO 11172-3 and 13818-3, section 2.4.1.3. */
function mpegLength(bytes: Uint8Array, at: number): number | undefined {
  const second = byteAt(bytes, at, 1)
  const third = byteAt(bytes, at, 2)
  if (bytes[at] !== 0xff || (second & 0xe0) !== 0xe0 || third >= 0xf0) return undefined
  const divisor = RATE_DIVISORS[(second >> 3) & 3] ?? 0
  const layer = 4 - ((second >> 1) & 3)
  const rate = SAMPLE_RATES[(third >> 2) & 3]
  if (divisor === 0 || rate === undefined) return undefined
  if (layer !== 1 && layer !== 2 && layer !== 3) return undefined
  const rates = divisor === 1 ? RATES_1[layer] : layer === 1 ? RATES_2_LAYER_1 : RATES_2
  const kilobits = rates[(third >> 4) - 1]
  if (kilobits === undefined) return undefined
  const padding = (third >> 1) & 1
  const perSecond = (kilobits * 1000) / (rate / divisor)
  if (layer === 1) return 4 * (Math.floor(12 * perSecond) + padding)
  return Math.floor((layer === 3 && divisor > 1 ? 72 : 144) * perSecond) + padding
}

const AC3_KILOBITS = [
  32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
]
const AC3_SAMPLE_RATES = [48_000, 44_100, 32_000]
const AC3_FRAME_SAMPLES = 1536
const MAX_AC3_VERSION = 10
const MAX_EAC3_VERSION = 16

/** ETSI TS 102 366: AC-3 and its successor. */
function ac3Length(bytes: Uint8Array, at: number, flip: number): number | undefined {
  if (byteAt(bytes, at, flip) !== 0x0b || byteAt(bytes, at, 1 ^ flip) !== 0x77) return undefined
  const version = byteAt(bytes, at, 5 ^ flip) >> 3
  if (version > MAX_EAC3_VERSION) return undefined
  if (version > MAX_AC3_VERSION) {
    return 2 * (((byteAt(bytes, at, 2 ^ flip) & 7) << 8) + byteAt(bytes, at, 3 ^ flip) + 1)
  }
  const code = byteAt(bytes, at, 4 ^ flip)
  const kilobits = AC3_KILOBITS[(code & 0x3f) >> 1]
  const rate = AC3_SAMPLE_RATES[code >> 6]
  if (kilobits === undefined || rate === undefined) return undefined
  const words = Math.floor((kilobits * 1000 * AC3_FRAME_SAMPLES) / rate / 16)
  return 2 * (words + (rate === 44_100 ? code & 1 : 0))
}

/** ETSI TS 102 114, section 5.3: the core of DTS. */
function dtsLength(bytes: Uint8Array, at: number, flip: number): number | undefined {
  if (byteAt(bytes, at, flip) !== 0x7f || byteAt(bytes, at, 1 ^ flip) !== 0xfe) return undefined
  if (byteAt(bytes, at, 2 ^ flip) !== 0x80 || byteAt(bytes, at, 3 ^ flip) !== 0x01) return undefined
  const high = byteAt(bytes, at, 5 ^ flip) & 3
  return (
    ((high << 12) | (byteAt(bytes, at, 6 ^ flip) << 4) | (byteAt(bytes, at, 7 ^ flip) >> 4)) + 1
  )
}

/** One kind of frames. */
interface Kind {
  /** How a frame begins. */
  readonly first: number
  readonly isSecond: (byte: number) => boolean
  readonly length: FrameLength
  readonly flip: 0 | 1
}

const KINDS: readonly Kind[] = [
  { first: 0xff, isSecond: (byte) => (byte & 0xe0) === 0xe0, length: mpegLength, flip: 0 },
  { first: 0x0b, isSecond: (byte) => byte === 0x77, length: ac3Length, flip: 0 },
  { first: 0x77, isSecond: (byte) => byte === 0x0b, length: ac3Length, flip: 1 },
  { first: 0x7f, isSecond: (byte) => byte === 0xfe, length: dtsLength, flip: 0 },
  { first: 0xfe, isSecond: (byte) => byte === 0x7f, length: dtsLength, flip: 1 },
]

/** For each pair of bytes, the kind of frame that may begin with it, counted from one; most pairs have none. */
const KIND_OF_PAIR = Uint8Array.from({ length: 0x1_00_00 }, (_, pair) => {
  return 1 + KINDS.findIndex(({ first, isSecond }) => first === pair >> 8 && isSecond(pair & 0xff))
})

/** Whether several frames of compressed audio follow each other somewhere in these bytes. */
export function hidesFrames(bytes: Uint8Array): boolean {
  let pair = 0
  for (let end = 0; end < bytes.length; end++) {
    pair = ((pair << 8) | (bytes[end] ?? 0)) & 0xff_ff
    const place = KIND_OF_PAIR[pair] ?? 0
    if (place === 0) continue
    const kind = KINDS[place - 1]
    if (kind !== undefined && areFrames(bytes, end - 1, kind)) return true
  }
  return false
}

function areFrames(bytes: Uint8Array, start: number, { length, flip }: Kind): boolean {
  let at = start
  for (let frame = 0; frame < FRAMES_IN_ROW; frame++) {
    const size = length(bytes, at, flip)
    if (size === undefined || size <= 0) return false
    at += size
  }
  return true
}

function byteAt(bytes: Uint8Array, at: number, offset: number): number {
  return bytes[at + offset] ?? 0
}
