import type { IncomingMessage, ServerResponse } from 'node:http'
import { CHUNKS_WRITTEN, EGRESS_CHUNKS_HEADER } from '../../protocol/link.ts'
import { LinkError } from '../link-error.ts'
import type { Log } from '../log.ts'
import { MalformedAnswer } from '../outbound/final-status.ts'
import type { AnswerBody } from './answer-body.ts'
import type { ChunkConnections } from './chunk-connections.ts'
import type { ChunkJoiner } from './chunk-joiner.ts'
import type { EventMemory } from './event-memory.ts'
import { Exchange } from './exchange.ts'
import { endToEnd, headerText, requestHeaders } from './headers.ts'
import { evidenceHeader, type OpenConnection } from './open-connection.ts'
import type { RequestedStream } from './requested-stream.ts'
import type { ProviderAnswer } from './provider-answer.ts'
import { relayAtOnce } from './relay-at-once.ts'
import { isEventStream, relayStream } from './relay-stream.ts'
import { isSmall, type RequestBody } from './request-body.ts'
import { chunkedBody } from './worker-body.ts'
import { canWrite, sendChunks, writeChunks } from './write-chunks.ts'
import type { WrittenStreams } from './written-streams.ts'

export interface RelayParts {
  /** From the worker, and to it. */
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: RequestBody
  /** Below the path of the provider's `base_url`. */
  readonly path: string
  /** The connection to the provider; nothing was sent on it yet. */
  readonly open: OpenConnection
  readonly joiner: ChunkJoiner
  /** For events of streams whose chunks are written here, and for small answers. */
  readonly memory: EventMemory
  /** Set where the worker asks for the chunks of the client's stream instead of the provider's bytes. */
  readonly requested: RequestedStream | undefined
  readonly written: WrittenStreams
  /** Where chunks may be sent instead of in the response. */
  readonly chunks: ChunkConnections
  /** Ms. */
  readonly now: () => number
  readonly log: Log
}

/**
 * Sends a request to the provider and its answer back, both with back-pressure. Resolves when the answer has begun; a
 * later failure breaks off the response to the worker. A worker that disconnects ends the call.
 * @throws LinkError when no answer came, or none that can be passed on
 */
export async function relay(parts: RelayParts): Promise<void> {
  const { request, response, body, path, open } = parts
  const { connection, pool, basePath } = open
  const exchange = new Exchange(
    (answer) => passOn(answer, parts),
    () => {
      // The answer may end before the whole request was sent; the rest of the request is then useless.
      body.discard()
      pool.release(connection)
    },
  )
  response.once('close', () => {
    if (!response.writableFinished) exchange.abandon(new Error('the caller has disconnected'))
  })
  const outgoing = {
    method: request.method ?? 'GET',
    path: `${basePath}${path}`,
    headers: requestHeaders(request.headers, body.preamble.length),
    body: body.bytes,
  }
  connection.send(outgoing, exchange)
  await exchange.begun.catch((cause: unknown) => {
    throw failureOf(cause)
  })
}

function passOn(answer: ProviderAnswer, parts: RelayParts): void {
  const { requested, written } = parts
  if (requested !== undefined && canWrite(answer, written)) {
    return answerChunks(requested, answer, parts)
  }
  return passOnBytes(answer, parts)
}

/** Sends a provider's answer as it is. */
export function passOnBytes(
  answer: AnswerBody & Pick<ProviderAnswer, 'statusCode' | 'headers'>,
  { response, open, joiner, memory }: Pick<RelayParts, 'response' | 'open' | 'joiner' | 'memory'>,
): void {
  const { statusCode, headers } = answer
  try {
    response.writeHead(statusCode, { ...endToEnd(headers), ...evidenceHeader(open) })
  } catch (cause) {
    // The parser accepts header values that Node's writer refuses.
    throw malformed(cause)
  }
  // In both cases an answer that is cut off destroys the response, so that the worker cannot mistake it for a complete
  // one.
  const events = isEventStream(headers)
  if (!events && isSmall(headerText(headers, 'content-length'))) {
    return relayAtOnce(answer, response, memory.forAnswer(open.channel.provider))
  }
  response.flushHeaders()
  return relayStream(answer, response, events ? { joiner, source: open.connection } : undefined)
}

/** Sends the chunks in the response, or on the worker's chunk connection; the response then only says so. */
function answerChunks(requested: RequestedStream, answer: ProviderAnswer, parts: RelayParts): void {
  const { response, open, chunks, ...deps } = parts
  const sent = requested.spec.to && chunks.open(requested.spec.to)
  if (sent !== undefined) {
    sendChunks(requested, answer, sent, { open, ...deps })
    response.writeHead(200, chunkHeaders(open, 'there'))
    response.end()
    return
  }
  const begin = () => {
    response.writeHead(200, chunkHeaders(open, 'here'))
    response.flushHeaders()
    return chunkedBody(response)
  }
  writeChunks(requested, answer, begin, { open, ...deps })
}

/** The head of an answer whose chunks are written here. */
export function chunkHeaders(
  open: OpenConnection,
  where: keyof typeof CHUNKS_WRITTEN,
): Record<string, string> {
  return {
    'content-type': 'text/event-stream',
    ...evidenceHeader(open),
    [EGRESS_CHUNKS_HEADER]: CHUNKS_WRITTEN[where],
  }
}

/** The refusal for an exchange that ended with this error before it had an answer. */
export function failureOf(cause: unknown): LinkError {
  if (cause instanceof LinkError) return cause
  if (cause instanceof MalformedAnswer) return malformed(cause)
  return new LinkError('provider_unreachable', 'the provider gave no answer', { cause })
}

function malformed(cause: unknown): LinkError {
  return new LinkError('provider_malformed', 'the provider gave an invalid answer', { cause })
}
