import {
  parseResponsesPreamble,
  type ChunkFormat,
  type StreamSpec,
} from '../../protocol/stream-record.ts'
import { MessagesChunks } from '../../worker/formats/messages-chunks.ts'
import { ResponsesChunks } from '../../worker/formats/responses-chunks.ts'
import { chatChunks } from '../../worker/stream/chat-chunks.ts'
import type { ChunkWriter } from '../../worker/stream/encoder.ts'
import type { TakeMemory } from '../../worker/stream/event-framer.ts'
import { LinkError } from '../link-error.ts'

/** A stream whose client chunks a worker has asked the daemon to write. */
export interface RequestedStream {
  readonly spec: StreamSpec
  /** Opens the stream's writer. The writer takes memory for text that it holds until the end of the stream. */
  readonly openWriter: (takeMemory: TakeMemory) => ChunkWriter
}

/** How many bytes of the call's body precede the request to the provider. */
export function preambleBytes(format: ChunkFormat | undefined): number {
  return format?.door === 'responses' ? format.ahead_bytes : 0
}

/**
 * Builds the stream that a specification describes.
 * @param preamble the bytes that preceded the request to the provider
 * @throws LinkError `invalid_request` when they are malformed
 */
export function requestedStream(spec: StreamSpec, preamble: Uint8Array): RequestedStream {
  return { spec, openWriter: writerOpener(spec, preamble) }
}

function writerOpener(
  { head, format }: StreamSpec,
  preamble: Uint8Array,
): RequestedStream['openWriter'] {
  if (format.door === 'chat') return () => chatChunks(head)
  if (format.door === 'messages') {
    const { prompt_estimate: promptEstimate, stop_sequences: stopSequences } = format
    return (takeMemory) => new MessagesChunks(head, { promptEstimate, stopSequences, takeMemory })
  }
  const given = parseResponsesPreamble(Buffer.from(preamble).toString('utf8'))
  if (given === undefined) {
    throw new LinkError('invalid_request', 'the preamble of the request is malformed')
  }
  const options = {
    answerId: head.id,
    tools: new Map(given.tools),
    encryptedContent: format.encrypted_content,
    opening: () => given.opening,
  }
  return (takeMemory) => new ResponsesChunks({ ...options, takeMemory })
}
