/**
 * Detects frames of compressed audio among what a file declares to be samples. Decoders based on FFmpeg look for such
 * frames, because some programs store compressed audio in WAV files, and then decode the frames, which last many times as
 * long as the samples would.
 */

/** FFmpeg decides by seven frames in a row; this many of one kind do not occur in samples by chance. */
const FRAMES_IN_ROW = 5

/**
 * At the start, FFmpeg decides by three frames of AAC, elsewhere only by more than a hundred. AAC headers contain so little
 * that five of them in a row occurred in two of 200 files of quiet noise.
 */
const AAC_FRAMES_AT_START = 3
const AAC_FRAMES_IN_ROW = 20
const MIN_AAC_FRAME = 7

/**
 * The length in bytes of the frame that begins at an offset; undefined where none does. `flip` is 1 where each pair of bytes
 * is swapped, else 0.
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

/** Divisors of the sample rates, by the version in the header: 2.5, reserved, 2, 1. */
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

/** ISO 13818-7, section 6.2: AAC in ADTS. */
function adtsLength(bytes: Uint8Array, at: number): number | undefined {
  if (bytes[at] !== 0xff || (byteAt(bytes, at, 1) & 0xf6) !== 0xf0) return undefined
  const high = byteAt(bytes, at, 3) & 3
  const length = (high << 11) | (byteAt(bytes, at, 4) << 3) | (byteAt(bytes, at, 5) >> 5)
  return length < MIN_AAC_FRAME ? undefined : length
}

/** ISO 14496-3, section 1.7.2: AAC in LOAS. */
function loasLength(bytes: Uint8Array, at: number): number | undefined {
  const second = byteAt(bytes, at, 1)
  if (bytes[at] !== 0x56 || (second & 0xe0) !== 0xe0) return undefined
  const length = (((second & 0x1f) << 8) | byteAt(bytes, at, 2)) + 3
  return length < MIN_AAC_FRAME ? undefined : length
}

/** A kind of frame of which several follow each other. */
interface Kind {
  /** The first byte of a frame. */
  readonly first: number
  readonly isSecond: (byte: number) => boolean
  readonly length: FrameLength
  readonly flip: 0 | 1
  /** How many frames in a row cannot be chance: at the start of the bytes, and anywhere. */
  readonly atStart: number
  readonly inRow: number
}

const AAC = { flip: 0, atStart: AAC_FRAMES_AT_START, inRow: AAC_FRAMES_IN_ROW } as const
const OTHER = { atStart: FRAMES_IN_ROW, inRow: FRAMES_IN_ROW }

// A frame is of the first kind that fits: no ADTS header is also one of MPEG audio.
const KINDS: readonly Kind[] = [
  { first: 0xff, isSecond: (byte) => (byte & 0xf6) === 0xf0, length: adtsLength, ...AAC },
  { first: 0x56, isSecond: (byte) => (byte & 0xe0) === 0xe0, length: loasLength, ...AAC },
  {
    first: 0xff,
    isSecond: (byte) => (byte & 0xe0) === 0xe0,
    length: mpegLength,
    flip: 0,
    ...OTHER,
  },
  { first: 0x0b, isSecond: (byte) => byte === 0x77, length: ac3Length, flip: 0, ...OTHER },
  { first: 0x77, isSecond: (byte) => byte === 0x0b, length: ac3Length, flip: 1, ...OTHER },
]

/** A sync word of frames that decoders count, whatever is between them. */
interface Mark {
  readonly word: number
  /** The value of the two bytes after the word, under the mask. */
  readonly mask: number
  readonly next: number
  /** How much one such word counts. */
  readonly weight: number
}

/**
 * The sum of weights that decides. FFmpeg decides by four words of DTS; one of TrueHD is enough if many frames without a
 * word precede it.
 */
const ENOUGH_MARKS = 4

/**
 * The sync words of DTS (ETSI TS 102 114) with 16 and 14 bits, in both byte orders, of its extension, and of TrueHD. The
 * bits after a DTS word say that a frame is complete; without this check a full-scale square wave would count as DTS. In
 * three megabytes of white noise, four words of DTS occur once in 10^13 times, and one of TrueHD once in 1,400. Recorded
 * sound is safer still: with 16 bits, that word is a jump across more than half of the scale.
 */
const MARKS: readonly Mark[] = [
  { word: 0x7ffe_8001, mask: 0xfc_00, next: 0xfc_00, weight: 1 },
  { word: 0xfe7f_0180, mask: 0x00_fc, next: 0x00_fc, weight: 1 },
  { word: 0x1fff_e800, mask: 0xff_f0, next: 0x07_f0, weight: 1 },
  { word: 0xff1f_00e8, mask: 0xf0_ff, next: 0xf0_07, weight: 1 },
  { word: 0x6458_2025, mask: 0, next: 0, weight: 1 },
  { word: 0xf872_6fba, mask: 0, next: 0, weight: ENOUGH_MARKS },
]

/** For each pair of bytes, one plus the index among kinds and marks of what may begin with it; 0 for most pairs. */
const PLACE_OF_PAIR = Uint8Array.from({ length: 0x1_00_00 }, (_, pair) => {
  const kind = KINDS.findIndex(
    ({ first, isSecond }) => first === pair >> 8 && isSecond(pair & 0xff),
  )
  if (kind !== -1) return 1 + kind
  const mark = MARKS.findIndex(({ word }) => word >>> 16 === pair)
  return mark === -1 ? 0 : 1 + KINDS.length + mark
})

/** Whether there are frames of compressed audio anywhere in these bytes. */
export function hidesFrames(bytes: Uint8Array): boolean {
  let marks = 0
  let pair = 0
  for (let end = 0; end < bytes.length; end++) {
    pair = ((pair << 8) | (bytes[end] ?? 0)) & 0xff_ff
    const place = PLACE_OF_PAIR[pair] ?? 0
    if (place === 0) continue
    const kind = KINDS[place - 1]
    if (kind !== undefined && areFrames(bytes, end - 1, kind)) return true
    const mark = MARKS[place - 1 - KINDS.length]
    if (mark !== undefined && isMark(bytes, end - 1, mark)) marks += mark.weight
    if (marks >= ENOUGH_MARKS) return true
  }
  return false
}

function areFrames(bytes: Uint8Array, start: number, kind: Kind): boolean {
  let at = start
  for (let frame = start === 0 ? kind.atStart : kind.inRow; frame > 0; frame--) {
    const size = kind.length(bytes, at, kind.flip)
    if (size === undefined || size <= 0) return false
    at += size
  }
  return true
}

function isMark(bytes: Uint8Array, at: number, { word, mask, next }: Mark): boolean {
  const isWord = pairAt(bytes, at, 0) === word >>> 16 && pairAt(bytes, at, 2) === (word & 0xff_ff)
  return isWord && (pairAt(bytes, at, 4) & mask) === next
}

function pairAt(bytes: Uint8Array, at: number, offset: number): number {
  return (byteAt(bytes, at, offset) << 8) | byteAt(bytes, at, offset + 1)
}

function byteAt(bytes: Uint8Array, at: number, offset: number): number {
  return bytes[at + offset] ?? 0
}
