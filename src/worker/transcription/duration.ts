import { parseFromTokenizer, type IOptions } from 'music-metadata'
import { fromBuffer } from 'strtok3'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Container } from './audio-type.ts'
import { FLAC_MARKER_BYTES, id3Tag, minSeconds, type AudioFormat } from './seconds-bounds.ts'
import { readWav, uncompressedSeconds } from './wav-audio.ts'
import { webmSeconds } from './webm-duration.ts'

/** Number of reads between two pauses, about 2 ms of work: other requests share this thread. */
const READS_PER_SLICE = 500

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
  const fileInfo = { mimeType: `audio/${container}` }
  const tokenizer = fromBuffer(withoutLeadingTags(bytes, container), { fileInfo })
  const peek = tokenizer.peekBuffer.bind(tokenizer)
  let reads = 0
  tokenizer.peekBuffer = async (target, options) => {
    reads += 1
    if (reads > MAX_READS) throw new Error('too many reads')
    if (reads % READS_PER_SLICE === 0) await pause()
    return peek(target, options)
  }
  try {
    const options = { duration: true, skipCovers: true, observer: ignoreTags }
    const { format } = await parseFromTokenizer(tokenizer, options)
    return { seconds: sound(format.duration), format }
  } catch {
    // A file that the library cannot read is forwarded; the provider decides whether it is valid.
    return { seconds: undefined, format: {} }
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

/** Empty where a file does not begin as its format prescribes. */
function withoutLeadingTags(bytes: Bytes, container: Container): Bytes {
  if (container === 'flac') return beginsWithStreamInfo(bytes) ? bytes : new Uint8Array()
  let audio = bytes
  for (let tags = 0; tags < MAX_ID3_TAGS; tags++) audio = audio.subarray(id3Tag(audio))
  return id3Tag(audio) === 0 ? audio : new Uint8Array()
}

/** RFC 9639, section 8.1: this block is the first. */
function beginsWithStreamInfo(flac: Bytes): boolean {
  return ((flac[FLAC_MARKER_BYTES] ?? 0) & 0x7f) === 0
}

function sound(seconds: number | undefined): number | undefined {
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}
