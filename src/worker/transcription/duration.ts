import { parseFromTokenizer } from 'music-metadata'
import { fromBuffer } from 'strtok3'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Container } from './audio-type.ts'
import { webmSeconds } from './webm-duration.ts'

/** Reads between two pauses, a few milliseconds of work: other requests share this thread. */
const READS_AT_A_TIME = 1_000

/** More than any honest file of 25 MiB needs; what asks for more is not measured. */
const MAX_READS = 2_000_000

/**
 * The length of a file in seconds, as its headers or its frames tell it; undefined where they do not. `pause`
 * lets other requests run.
 */
export async function measureSeconds(
  bytes: Bytes,
  container: Container,
  pause: () => Promise<void>,
): Promise<number | undefined> {
  const told = await toldSeconds(bytes, container, pause)
  return told ?? (container === 'webm' ? sound(webmSeconds(bytes)) : undefined)
}

async function toldSeconds(
  bytes: Bytes,
  container: Container,
  pause: () => Promise<void>,
): Promise<number | undefined> {
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
    return sound(format.duration)
  } catch {
    // A file it cannot read is for the provider to judge.
    return undefined
  }
}

function sound(seconds: number | undefined): number | undefined {
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}
