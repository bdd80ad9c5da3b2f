import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { Log } from '../log.ts'
import { LinkError } from '../link-error.ts'
import type { ChunkJoiner, PausableSource } from './chunk-joiner.ts'
import type { EventMemory } from './event-memory.ts'
import { headerText } from './headers.ts'
import type { RequestedStream } from './requested-stream.ts'
import type { ProviderAnswer } from './provider-answer.ts'
import type { SentChunks } from './sent-chunks.ts'
import type { WorkerBody } from './worker-body.ts'
import { WrittenStream, type WrittenStreamDeps } from './written-stream.ts'
import type { WrittenStreams } from './written-streams.ts'

export interface ChunkWriting {
  /** The source that the answer is read from. */
  readonly open: { readonly connection: PausableSource }
  readonly joiner: ChunkJoiner
  readonly memory: EventMemory
  readonly written: WrittenStreams
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

/**
 * Whether the daemon can write the chunks of this answer: it is the stream that was asked for, has no content coding,
 * and there is room for its record. Where the daemon cannot, the worker reads the provider's bytes and writes the
 * chunks itself.
 */
export function canWrite(
  { statusCode, headers }: ProviderAnswer,
  written: WrittenStreams,
): boolean {
  const coding = headerText(headers, 'content-encoding')?.trim().toLowerCase() ?? 'identity'
  return statusCode === 200 && coding === 'identity' && written.hasRoom()
}

/**
 * Writes the chunks of an answer to the body that `begin` returns; `begin` is called once the stream's name is known to
 * be new.
 * @throws LinkError `invalid_request` when the name is in use
 */
export function writeChunks(
  requested: RequestedStream,
  answer: ProviderAnswer,
  begin: () => WorkerBody,
  writing: ChunkWriting,
): void {
  add(requested, answer, begin, writing, () => {})
}

/**
 * Like `writeChunks`, over the worker's chunk connection, on which the record is sent, too.
 * @throws LinkError `invalid_request` when the name is in use
 */
export function sendChunks(
  requested: RequestedStream,
  answer: ProviderAnswer,
  chunks: SentChunks,
  writing: ChunkWriting,
): void {
  const { stream } = requested.spec
  const { written } = writing
  if (written.has(stream)) chunks.drop()
  const begin = () => chunks
  add(requested, answer, begin, writing, (record) => chunks.close(record))
  chunks.once('close', () => {
    if (chunks.hasRecord) written.end(stream)
  })
}

/** @param tell called with the record, once workers can ask for it */
function add(
  requested: RequestedStream,
  answer: ProviderAnswer,
  begin: () => WorkerBody,
  { open, written, ...deps }: ChunkWriting,
  tell: (record: StreamRecord) => void,
): void {
  const { stream } = requested.spec
  if (written.has(stream)) throw new LinkError('invalid_request', 'the stream is not new')
  written.add(stream, (keep, disconnected) => {
    const ended: WrittenStreamDeps['ended'] = (record, keptMs, dropped) => {
      keep(record, keptMs, dropped)
      tell(record)
    }
    const own = { source: open.connection, ended, disconnected }
    return new WrittenStream(requested, answer, begin(), { ...deps, ...own })
  })
}
