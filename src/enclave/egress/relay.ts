import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { EGRESS_EVIDENCE_HEADER } from '../../protocol/link.ts'
import { LinkError } from '../link-error.ts'
import { endToEnd } from './headers.ts'

export interface RelayParts {
  /** From the worker, and to it. */
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** To the provider; connected, and nothing sent yet. */
  readonly sent: ClientRequest
  readonly evidenceSha256: string
}

/**
 * Streams a request to the provider and its answer back, each no faster than its reader. Resolves when the answer
 * has begun; what breaks after that breaks the worker's body too. Throws `LinkError` when no answer came. That a
 * worker that leaves ends the call is up to the signal of the request that was opened.
 */
export function relay({ request, response, sent, evidenceSha256 }: RelayParts): Promise<void> {
  return new Promise((resolve, reject) => {
    sent.on('error', (cause) => {
      request.unpipe(sent)
      // What is left of the body goes nowhere, so that the refusal can be read on the same connection.
      request.resume()
      if (response.headersSent) response.destroy()
      else reject(new LinkError('provider_unreachable', 'the provider gave no answer', { cause }))
    })
    sent.once('upgrade', (_answer, socket) => socket.destroy())
    sent.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, {
        ...endToEnd(answer.headers),
        [EGRESS_EVIDENCE_HEADER]: evidenceSha256,
      })
      response.flushHeaders()
      // An answer that breaks off destroys the response: nobody may take it for a whole one.
      pipeline(answer, response, () => {})
      resolve()
    })
    request.pipe(sent)
  })
}
