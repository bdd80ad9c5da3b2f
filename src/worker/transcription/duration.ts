import { parseFromTokenizer } from 'music-metadata'
import { fromBuffer } from 'strtok3'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Container } from './audio-type.ts'
import { minSeconds, type AudioFormat } from './seconds-bounds.ts'
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
  const tokenizer = fromBuffer(bytes, { fileInfo: { mimeType: `audio/${container}` } })
  const peek = tokenizer.peekBuffer.bind(tokenizer)
  let reads = 0
  tokenizer.peekBuffer = async (target, options) => {
    reads += 1
    if (reads > MAX_READS) throw new Error('too many reads')
    if (reads % READS_PER_SLICE === 0) await pause()
    return peek(target, options)
  }
  try {
    const { format } = await parseFromTokenizer(tokenizer, { duration: true, skipCovers: true })
    return { seconds: sound(format.duration), format }
  } catch {
    // A file that the library cannot read is forwarded; the provider decides whether it is valid.
    return { seconds: undefined, format: {} }
  }
}

function sound(seconds: number | undefined): number | undefined {
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}
