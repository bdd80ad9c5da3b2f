import type { Bytes } from '../../../protocol/bytes.ts'

/**
 * The boxes (ISO/IEC 14496-12, section 4.2) that state the duration and the format of a track, by their place in the tree.
 * Sample tables, names and pictures are not among them.
 */
type Place = { readonly [name: string]: Place | LeafRule }
type LeafRule = (view: DataView) => boolean

const MAX_LEAF_BYTES = 64 * 1024
/** Maximum size of a fragment's sample table, bytes: half an hour of sound or more. */
const MAX_RUN_BYTES = 1024 * 1024

const short: LeafRule = (view) => view.byteLength <= MAX_LEAF_BYTES

const PLACES: Place = {
  ftyp: short,
  moov: {
    mvhd: short,
    trak: { tkhd: short, mdia: { mdhd: short, hdlr: short, minf: { stbl: { stsd: short } } } },
  },
  moof: { traf: { tfhd: short, trun: isWholeRun } },
}

const RUN_HEADER_BYTES = 8
/** Flag bits of a run (8.8.8). Each stands for a field of four bytes: before the samples, and in each sample. */
const RUN_FIELDS = [0x01, 0x04] as const
const SAMPLE_FIELDS = [0x100, 0x200, 0x400, 0x800] as const
const FIELD_BYTES = 4

/**
 * Whether a run's size matches its count of samples: a reader that trusts the count never ends where samples have no fields.
 */
function isWholeRun(view: DataView): boolean {
  if (view.byteLength < RUN_HEADER_BYTES || view.byteLength > MAX_RUN_BYTES) return false
  const flags = view.getUint32(0)
  const fieldsOf = (bits: readonly number[]) => bits.filter((bit) => (flags & bit) !== 0).length
  const fields = fieldsOf(RUN_FIELDS) + fieldsOf(SAMPLE_FIELDS) * view.getUint32(4)
  return view.byteLength === RUN_HEADER_BYTES + FIELD_BYTES * fields
}

/** Maximum number of boxes: a fragment for each half second of a long recording, and some 20 ms of work. */
const MAX_BOXES = 100_000
/** Maximum size of the boxes that are kept, bytes. */
const MAX_OUTLINE_BYTES = 4 * 1024 * 1024

/** An MP4 file with only those boxes; empty where one is damaged, or there are too many. */
export function mp4Outline(mp4: Bytes): Bytes {
  // No box is longer in the outline than in the file.
  const room = Math.min(mp4.length, MAX_OUTLINE_BYTES)
  const outline = new Outline(mp4, new Uint8Array(room))
  return outline.copy(PLACES, 0, mp4.length) ? outline.written() : new Uint8Array()
}

class Outline {
  readonly #from: DataView
  readonly #bytes: Bytes
  readonly #to: Bytes
  #length = 0
  #boxes = 0

  constructor(bytes: Bytes, to: Bytes) {
    this.#from = viewOf(bytes)
    this.#bytes = bytes
    this.#to = to
  }

  written(): Bytes {
    return this.#to.subarray(0, this.#length)
  }

  /**
   * Copies the boxes between `at` and `end` that have a place.
   * @returns false where a box does not follow its rule
   */
  copy(places: Place, at: number, end: number): boolean {
    for (const box of boxesOf(this.#from, at, end)) {
      this.#boxes += 1
      if (this.#boxes > MAX_BOXES) return false
      const place = Object.hasOwn(places, box.name) ? places[box.name] : undefined
      if (place !== undefined && !this.#copyBox(box, place)) return false
    }
    return true
  }

  #copyBox({ name, start, end }: Box, place: Place | LeafRule): boolean {
    const begin = this.#length
    if (begin + BOX_HEADER_BYTES > this.#to.length) return false
    this.#length += BOX_HEADER_BYTES
    const isCopied =
      typeof place === 'function'
        ? this.#copyLeaf(this.#bytes.subarray(start, end), place)
        : this.copy(place, start, end)
    if (!isCopied) return false
    const header = viewOf(this.#to.subarray(begin, begin + BOX_HEADER_BYTES))
    header.setUint32(0, this.#length - begin)
    for (let at = 0; at < name.length; at++) header.setUint8(4 + at, name.charCodeAt(at))
    return true
  }

  #copyLeaf(payload: Bytes, rule: LeafRule): boolean {
    if (this.#length + payload.length > this.#to.length || !rule(viewOf(payload))) return false
    this.#to.set(payload, this.#length)
    this.#length += payload.length
    return true
  }
}

interface Box {
  readonly name: string
  readonly start: number
  readonly end: number
}

const BOX_HEADER_BYTES = 8
const LONG_HEADER_BYTES = 16
/** Special values of the size field: the box extends to the end of its container, or its size follows its name. */
const TO_THE_END = 0
const LONG = 1

/** The boxes between two offsets; the last one is cut at `to`. Stops at the first invalid box. */
function* boxesOf(view: DataView, from: number, to: number): Generator<Box> {
  for (let at = from; at + BOX_HEADER_BYTES <= to;) {
    const stated = view.getUint32(at)
    const isLong = stated === LONG
    const headerBytes = isLong ? LONG_HEADER_BYTES : BOX_HEADER_BYTES
    const start = at + headerBytes
    if (start > to) return
    const long = isLong ? Number(view.getBigUint64(at + BOX_HEADER_BYTES)) : stated
    const size = stated === TO_THE_END ? to - at : long
    if (size < headerBytes) return
    const end = Math.min(at + size, to)
    yield { name: nameAt(view, at + 4), start, end }
    at = end
  }
}

function nameAt(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((offset) => view.getUint8(at + offset)))
}

function viewOf(bytes: Bytes): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
