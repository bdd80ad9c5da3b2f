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

/** So much is read between two pauses, about 2 ms of work: other requests share this thread. Each read counts for some bytes more. */
const SLICE_BYTES = 64 * 1024
const READ_COST_BYTES = 128

/** The most that the library may read, and take apart, without a pause: the samples of one fragment of an MP4 file. */
const LARGEST_READ_BYTES = 1024 * 1024

/** Maximum number of reads, some seconds of work. No valid file of 25 MiB needs more; one that does is not measured. */
const MAX_READS = 600_000

/**
 * The duration of a file in seconds, from its headers or its frames, but at least the minimum that its size implies.
 * Undefined when the file states none. `pause` lets other requests run.
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
 * The duration that a file states, for its reservation; undefined where it states none, and of formats whose size bounds it (WAV, and
 * MPEG audio, whose frames have a least size). Silence takes next to nothing in the others: twelve kilobytes of FLAC can be an hour.
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

/** Files that the library cannot measure: browser recordings, and WAV files whose header was never completed. */
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

/** Lets other requests run between the library's reads, and ends a file that needs too many, or too much at once. */
function limitReads(tokenizer: ITokenizer, pause: () => Promise<void>): void {
  const peek = tokenizer.peekBuffer.bind(tokenizer)
  const readToken = tokenizer.readToken.bind(tokenizer)
  let reads = 0
  let unpaused = 0
  tokenizer.peekBuffer = async (target, options) => {
    reads += 1
    unpaused += READ_COST_BYTES + target.length
    if (reads > MAX_READS) throw new Error('too many reads')
    if (unpaused > SLICE_BYTES) {
      unpaused = 0
      await pause()
    }
    return peek(target, options)
  }
  // The library makes room for what a length says before it looks whether the file has as much.
  tokenizer.readToken = async (token, position) => {
    if (token.len > LARGEST_READ_BYTES) throw new Error('too much at once')
    return readToken(token, position)
  }
}

/**
 * Names and the like say nothing of the duration, but the library compares each with all others of its kind, without a pause: half
 * a megabyte of them takes seconds. It tells of the container before it reads those behind the beginning of the audio.
 */
const ignoreTags: NonNullable<IOptions['observer']> = ({ metadata }) => {
  Object.assign(metadata, { addTag: async () => {} })
}

/** More tags than any known program writes in front of the audio. */
const MAX_ID3_TAGS = 8

/** Empty where a file has more tags in front. */
function withoutLeadingTags(bytes: Bytes): Bytes {
  let audio = bytes
  for (let tags = 0; tags < MAX_ID3_TAGS; tags++) audio = audio.subarray(id3Tag(audio))
  return id3Tag(audio) === 0 ? audio : new Uint8Array()
}

/**
 * What the library gets of a file: it reads some formats in a time that grows with the square of what an uploader puts into them, or
 * that has no end. An outline has what states duration and format, and nothing else.
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
