import { parseFromTokenizer } from 'music-metadata'
import { fromBuffer } from 'strtok3'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Container } from './audio-type.ts'
import { minSeconds, type AudioFormat } from './seconds-bounds.ts'
import { readWav, uncompressedSeconds } from './wav-audio.ts'
import { webmSeconds } from './webm-duration.ts'

/** Reads between two pauses, about two milliseconds of work: other requests share this thread. */
const READS_AT_A_TIME = 500

/** More than an honest file of 25 MiB needs, and some seconds of work; what asks for more is not measured. */
const MAX_READS = 600_000

/**
 * The length of a file in seconds, as its headers or its frames tell it, and never less than its bytes allow;
 * undefined where they tell none. `pause` lets other requests run.
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

/** What the library does not measure: recordings of browsers, and WAV whose writer never came back to its header. */
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
  const tokenizer = fromBuffer(bytes, { fileInfo: { mimeType: `audio/${container}` } })
  const peek = tokenizer.peekBuffer.bind(tokenizer)
  let reads = 0
  tokenizer.peekBuffer = async (target, options) => {
    reads += 1
    if (reads > MAX_READS) throw new Error('too many reads')
    if (reads % READS_AT_A_TIME === 0) await pause()
    return peek(target, options)
  }
  try {
    const { format } = await parseFromTokenizer(tokenizer, { duration: true, skipCovers: true })
    return { seconds: sound(format.duration), format }
  } catch {
    // A file it cannot read is for the provider to judge.
    return { seconds: undefined, format: {} }
  }
}

function sound(seconds: number | undefined): number | undefined {
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}
