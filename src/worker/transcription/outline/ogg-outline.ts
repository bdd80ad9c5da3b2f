import { concatBytes, type Bytes } from '../../../protocol/bytes.ts'

/** The fields of a page's header (RFC 3533, section 6), by their offset. */
const FLAGS = 5
const POSITION = 6
const SERIAL = 14
const SEGMENTS = 26
const HEADER_BYTES = 27

const CAPTURE_PATTERN = 0x4f676753 // OggS
const FIRST_PAGE = 0x02
const LAST_PAGE = 0x04

/** The position value of a page in which no packet ends. */
const NO_POSITION = 0xffff_ffff_ffff_ffffn

/** Maximum number of streams: sound, a video, a skeleton and a few languages. A file with more is not measured. */
const MAX_STREAMS = 8

/** Pages visited between two pauses: some two milliseconds of work. */
const PAGES_PER_SLICE = 20_000

interface Stream {
  readonly first: Bytes
  /** The position of the last packet, in samples or the codec's own unit. */
  position: bigint
}

/**
 * An Ogg file with only the first page of each stream, which states the codec, and an empty last page with the position at
 * which the stream ends: neither names and pictures nor the number of pages make it longer. Empty where there are too many
 * streams. It ends where a page does not follow directly on the previous one.
 * @param pause lets other requests run
 */
export async function oggOutline(ogg: Bytes, pause: () => Promise<void>): Promise<Bytes> {
  const view = new DataView(ogg.buffer, ogg.byteOffset, ogg.byteLength)
  const streams = new Map<number, Stream>()
  let at = 0
  for (let pages = 1; isPage(view, at); pages++) {
    if (pages % PAGES_PER_SLICE === 0) await pause()
    const end = pageEnd(view, at)
    const serial = view.getUint32(at + SERIAL, true)
    const stream = streams.get(serial)
    const position = view.getBigUint64(at + POSITION, true)
    if (stream === undefined) {
      if ((view.getUint8(at + FLAGS) & FIRST_PAGE) === 0) break
      if (streams.size === MAX_STREAMS) return new Uint8Array()
      streams.set(serial, { first: ogg.subarray(at, end), position })
    } else if (position !== NO_POSITION) stream.position = position
    at = end
  }
  const all = [...streams.values()]
  return concatBytes(...all.map(({ first }) => first), ...all.map(lastPage))
}

function isPage(view: DataView, at: number): boolean {
  return at + HEADER_BYTES <= view.byteLength && view.getUint32(at) === CAPTURE_PATTERN
}

function pageEnd(view: DataView, at: number): number {
  const body = at + HEADER_BYTES + view.getUint8(at + SEGMENTS)
  let end = body
  for (let segment = at + HEADER_BYTES; segment < body && segment < view.byteLength; segment++)
    end += view.getUint8(segment)
  return end
}

function lastPage({ first, position }: Stream): Bytes {
  const page = first.slice(0, HEADER_BYTES)
  const view = new DataView(page.buffer)
  view.setUint8(FLAGS, LAST_PAGE)
  view.setBigUint64(POSITION, position, true)
  view.setUint8(SEGMENTS, 0)
  return page
}
