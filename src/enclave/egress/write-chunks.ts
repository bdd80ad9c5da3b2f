import type { StreamRecord } from '../../protocol/stream-record.ts'
import type { Log } from '../log.ts'
import { LinkError } from '../link-error.ts'
import type { ChunkJoiner, RestingSource } from './chunk-joiner.ts'
import type { EventMemory } from './event-memory.ts'
import { headerText } from './headers.ts'
import type { OrderedChunks } from './ordered-chunks.ts'
import type { ProviderAnswer } from './provider-answer.ts'
import type { SentChunks } from './sent-chunks.ts'
import type { WorkerBody } from './worker-body.ts'
import { WrittenStream, type WrittenStreamDeps } from './written-stream.ts'
import type { WrittenStreams } from './written-streams.ts'

export interface ChunkWriting {
  /** What the answer is read from. */
  readonly open: { readonly connection: RestingSource }
  readonly joiner: ChunkJoiner
  readonly memory: EventMemory
  readonly written: WrittenStreams
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

/**
 * Whether the chunks of this answer can be written here: it is the stream that was asked for, in a coding that can be read here, and there
 * is room for its record. Where they cannot, the worker reads the provider's bytes and writes the chunks itself.
 */
export function canWrite(
  { statusCode, headers }: ProviderAnswer,
  written: WrittenStreams,
): boolean {
  const coding = headerText(headers, 'content-encoding')?.trim().toLowerCase() ?? 'identity'
  return statusCode === 200 && coding === 'identity' && written.hasRoom()
}

/**
 * Writes the chunks of an answer to where `begin` says, which is called once the stream has its name.
 * @throws LinkError `invalid_request` when the name is in use
 */
export function writeChunks(
  ordered: OrderedChunks,
  answer: ProviderAnswer,
  begin: () => WorkerBody,
  writing: ChunkWriting,
): void {
  add(ordered, answer, begin, writing, () => {})
}

/**
 * The same over the worker's connection for chunks, on which it is told the record, too.
 * @throws LinkError `invalid_request` when the name is in use
 */
export function sendChunks(
  ordered: OrderedChunks,
  answer: ProviderAnswer,
  chunks: SentChunks,
  writing: ChunkWriting,
): void {
  const { stream } = ordered.order
  const { written } = writing
  if (written.has(stream)) chunks.drop()
  const begin = () => chunks
  add(ordered, answer, begin, writing, (record) => chunks.close(record))
  chunks.once('close', () => {
    if (chunks.hasRecord) written.end(stream)
  })
}

/** @param tell called with the record once that can be asked for */
function add(
  ordered: OrderedChunks,
  answer: ProviderAnswer,
  begin: () => WorkerBody,
  { open, written, ...deps }: ChunkWriting,
  tell: (record: StreamRecord) => void,
): void {
  const { stream } = ordered.order
  if (written.has(stream)) throw new LinkError('invalid_request', 'the stream is not new')
  written.add(stream, (keep, left) => {
    const ended: WrittenStreamDeps['ended'] = (record, keptMs, dropped) => {
      keep(record, keptMs, dropped)
      tell(record)
    }
    const own = { source: open.connection, ended, left }
    return new WrittenStream(ordered, answer, begin(), { ...deps, ...own })
  })
}
