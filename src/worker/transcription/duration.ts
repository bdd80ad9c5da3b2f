import { parseFromTokenizer, type IOptions } from 'music-metadata'
import { fromBuffer, type ITokenizer } from 'strtok3'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Container } from './audio-type.ts'
import { flacOutline } from './outline/flac-outline.ts'
import { mp4Outline } from './outline/mp4-outline.ts'
import { oggOutline } from './outline/ogg-outline.ts'
import { id3Tag, minSeconds, type AudioFormat } from './seconds-bounds.ts'
import { readWav, uncompressedSeconds } from './wav-audio.ts'
import { webmSeconds } from './webm-duration.ts'

/**
 * Number of bytes that are read between two pauses, about 2 ms of work, because other requests share this thread. Each read
 * counts as some bytes more.
 */
const SLICE_BYTES = 64 * 1024
const READ_COST_BYTES = 128

/**
 * Largest single read of the library, bytes, which it parses without a pause: the samples of one fragment of an MP4 file.
 */
const LARGEST_READ_BYTES = 1024 * 1024

/** Maximum number of reads, some seconds of work. No valid file of 25 MiB needs more; a file that does is not measured. */
const MAX_READS = 600_000

/**
 * The duration of a file in seconds, from its headers or its frames, but at least the minimum that its size implies.
 * @param pause lets other requests run
 * @returns undefined when the file states no duration
 */
export async function measureSeconds(
  bytes: Bytes,
  container: Container,
  pause: () => Promise<void>,
): Promise<number | undefined> {
  const { seconds, format } = await readFormat(bytes, container, pause)
  const least = minSeconds(bytes, container, format)
  const reported = seconds ?? (await otherwise(bytes, container, pause))
  return reported === undefined ? undefined : Math.max(reported, least)
}

/**
 * The duration that a file states, for its reservation, in seconds. Undefined where it states none, and for formats in which
 * the size bounds the duration (WAV, and MPEG audio, whose frames have a minimum size). In the others silence takes almost
 * no bytes: twelve kilobytes of FLAC can be an hour.
 */
export async function statedSeconds(
  bytes: Bytes,
  container: Container,
  pause: () => Promise<void>,
): Promise<number | undefined> {
  if (container === 'wav' || container === 'mpeg') return undefined
  const seconds =
    container === 'webm'
      ? await webmSeconds(bytes, pause)
      : (await readFormat(bytes, container, pause)).seconds
  return sound(seconds)
}

/** Measures files that the library cannot: browser recordings, and WAV files whose header was never completed. */
async function otherwise(
  bytes: Bytes,
  container: Container,
  pause: () => Promise<void>,
): Promise<number | undefined> {
  if (container === 'webm') return sound(await webmSeconds(bytes, pause))
  return container === 'wav' ? sound(uncompressedSeconds(readWav(bytes))) : undefined
}

async function readFormat(
  bytes: Bytes,
  container: Container,
  pause: () => Promise<void>,
): Promise<{ readonly seconds: number | undefined; readonly format: AudioFormat }> {
  const outline = await OUTLINES[container](bytes, pause)
  const fileInfo = { mimeType: `audio/${container}` }
  const tokenizer = fromBuffer(outline, { fileInfo })
  limitReads(tokenizer, pause)
  try {
    const options = { duration: true, skipCovers: true, observer: ignoreTags }
    const { format } = await parseFromTokenizer(tokenizer, options)
    return { seconds: sound(format.duration), format }
  } catch {
    // A file that the library cannot read is forwarded; the provider decides whether it is valid.
    return { seconds: undefined, format: {} }
  }
}

/** Lets other requests run between the library's reads, and fails a file that needs too many reads or a too large one. */
function limitReads(tokenizer: ITokenizer, pause: () => Promise<void>): void {
  const peek = tokenizer.peekBuffer.bind(tokenizer)
  const readToken = tokenizer.readToken.bind(tokenizer)
  let reads = 0
  let unpaused = 0
  tokenizer.peekBuffer = async (target, options) => {
    reads += 1
    unpaused += READ_COST_BYTES + target.length
    if (reads > MAX_READS) throw new Error('reading the duration takes too many reads')
    if (unpaused > SLICE_BYTES) {
      unpaused = 0
      await pause()
    }
    return peek(target, options)
  }
  // The library allocates memory for a stated length before it checks whether the file is that long.
  tokenizer.readToken = async (token, position) => {
    if (token.len > LARGEST_READ_BYTES) throw new Error('a single read of the file is too long')
    return readToken(token, position)
  }
}

/**
 * Makes the library ignore tags. Names and the like say nothing about the duration, but the library compares each tag with
 * all others of its kind, without a pause: half a megabyte of them takes seconds. The observer is called before the library
 * reads the tags behind the beginning of the audio.
 */
const ignoreTags: NonNullable<IOptions['observer']> = ({ metadata }) => {
  Object.assign(metadata, { addTag: async () => {} })
}

/** Maximum number of leading ID3 tags, more than any known program writes. */
const MAX_ID3_TAGS = 8

/** The file without leading ID3 tags; empty where there are too many. */
function withoutLeadingTags(bytes: Bytes): Bytes {
  let audio = bytes
  for (let tags = 0; tags < MAX_ID3_TAGS; tags++) audio = audio.subarray(id3Tag(audio))
  return id3Tag(audio) === 0 ? audio : new Uint8Array()
}

/**
 * The reduced file that the library gets: for some formats its time grows with the square of what an uploader puts into the
 * file, or is unlimited. An outline contains only what states duration and format.
 */
const OUTLINES: Readonly<
  Record<Container, (bytes: Bytes, pause: () => Promise<void>) => Bytes | Promise<Bytes>>
> = {
  flac: flacOutline,
  mp4: mp4Outline,
  mpeg: withoutLeadingTags,
  ogg: oggOutline,
  wav: withoutLeadingTags,
  webm: withoutLeadingTags,
}

function sound(seconds: number | undefined): number | undefined {
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}
