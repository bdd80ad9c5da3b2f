import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { EGRESS_CHUNKS_HEADER, EGRESS_EVIDENCE_HEADER } from '../../protocol/link.ts'
import type { ChunkOrder } from '../../protocol/stream-record.ts'
import { LinkError } from '../link-error.ts'
import type { Log } from '../log.ts'
import { finalAnswer, MalformedAnswer } from '../outbound/final-answer.ts'
import type { ChunkJoiner } from './chunk-joiner.ts'
import { endToEnd } from './headers.ts'
import { isSmall, relayAtOnce, sendBody } from './small-bodies.ts'
import { isEventStream, relayEvents } from './relay-events.ts'
import { WrittenStream } from './written-stream.ts'
import type { WrittenStreams } from './written-streams.ts'

export interface RelayParts {
  /** From the worker, and to it. */
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The request to the provider; connected, nothing sent yet. */
  readonly sent: ClientRequest
  readonly evidenceSha256: string
  readonly joiner: ChunkJoiner
  /** Asks for the chunks of the client's stream instead of the provider's bytes. */
  readonly order: ChunkOrder | undefined
  readonly written: WrittenStreams
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

/**
 * Streams a request to the provider and its answer back, each no faster than its reader. Resolves when the answer has
 * begun; a later failure breaks the worker's body too. When the worker disconnects, the signal of the opened request ends
 * the call.
 * @throws LinkError when no answer came, or none that can be passed on
 */
export async function relay(parts: RelayParts): Promise<void> {
  const { request, response, sent, evidenceSha256, joiner, order } = parts
  const answered = finalAnswer(sent)
  const discardRest = sendBody(request, sent)
  const answer = await answered.catch((cause: unknown) => {
    discardRest()
    throw failureOf(cause)
  })
  if (order !== undefined && isReadable(answer)) return writeChunks(order, answer, parts)
  try {
    const headers = { ...endToEnd(answer.headers), [EGRESS_EVIDENCE_HEADER]: evidenceSha256 }
    response.writeHead(answer.statusCode ?? 502, headers)
  } catch (cause) {
    // Node's parser accepts header values that its writer refuses.
    sent.destroy()
    throw malformed(cause)
  }
  // Either way, an answer that is cut off destroys the response, so that it cannot be taken for a complete one.
  const events = isEventStream(answer)
  if (!events && isSmall(answer.headers)) return relayAtOnce(answer, response)
  response.flushHeaders()
  if (events) relayEvents(answer, response, joiner)
  else pipeline(answer, response, () => {})
}

/** Whether an answer is the stream that was asked for, in a coding that can be read here. */
function isReadable({ statusCode, headers }: IncomingMessage): boolean {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  return statusCode === 200 && coding === 'identity'
}

function writeChunks(
  order: ChunkOrder,
  answer: IncomingMessage,
  { response, sent, evidenceSha256, written, ...deps }: RelayParts,
): void {
  if (written.has(order.stream)) {
    sent.destroy()
    throw new LinkError('invalid_request', 'the stream is not new')
  }
  written.add(order.stream, (ended) => {
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      [EGRESS_EVIDENCE_HEADER]: evidenceSha256,
      [EGRESS_CHUNKS_HEADER]: 'written',
    })
    response.flushHeaders()
    return new WrittenStream(order, answer, response, { ...deps, ended })
  })
}

function failureOf(cause: unknown): LinkError {
  if (cause instanceof MalformedAnswer) return malformed(cause)
  return new LinkError('provider_unreachable', 'the provider gave no answer', { cause })
}

function malformed(cause: unknown): LinkError {
  return new LinkError('provider_malformed', 'the provider gave an answer that is none', { cause })
}
