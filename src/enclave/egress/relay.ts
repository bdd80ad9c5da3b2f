import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { EGRESS_EVIDENCE_HEADER } from '../../protocol/link.ts'
import { LinkError } from '../link-error.ts'
import { finalAnswer, MalformedAnswer } from '../outbound/final-answer.ts'
import type { ChunkJoiner } from './chunk-joiner.ts'
import { endToEnd } from './headers.ts'
import { isEventStream, relayEvents } from './relay-events.ts'

export interface RelayParts {
  /** From the worker, and to it. */
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The request to the provider; connected, nothing sent yet. */
  readonly sent: ClientRequest
  readonly evidenceSha256: string
  readonly joiner: ChunkJoiner
}

/**
 * Streams a request to the provider and its answer back, each no faster than its reader. Resolves when the answer has
 * begun; a later failure breaks the worker's body too. When the worker disconnects, the signal of the opened request ends
 * the call.
 * @throws LinkError when no answer came, or none that can be passed on
 */
export async function relay({
  request,
  response,
  sent,
  evidenceSha256,
  joiner,
}: RelayParts): Promise<void> {
  sent.on('error', () => {
    request.unpipe(sent)
    // The rest of the body is discarded, so that the refusal can be read on the same connection.
    request.resume()
  })
  const answered = finalAnswer(sent)
  request.pipe(sent)
  const answer = await answered.catch((cause: unknown) => {
    request.unpipe(sent)
    request.resume()
    throw failureOf(cause)
  })
  try {
    const headers = { ...endToEnd(answer.headers), [EGRESS_EVIDENCE_HEADER]: evidenceSha256 }
    response.writeHead(answer.statusCode ?? 502, headers)
    response.flushHeaders()
  } catch (cause) {
    // Node's parser accepts header values that its writer refuses.
    sent.destroy()
    throw malformed(cause)
  }
  // Either way, an answer that is cut off destroys the response, so that it cannot be taken for a complete one.
  if (isEventStream(answer)) relayEvents(answer, response, joiner)
  else pipeline(answer, response, () => {})
}

function failureOf(cause: unknown): LinkError {
  if (cause instanceof MalformedAnswer) return malformed(cause)
  return new LinkError('provider_unreachable', 'the provider gave no answer', { cause })
}

function malformed(cause: unknown): LinkError {
  return new LinkError('provider_malformed', 'the provider gave an answer that is none', { cause })
}
