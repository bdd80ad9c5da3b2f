import type { IncomingMessage, ServerResponse } from 'node:http'
import { LinkError } from './link-error.ts'

/** What a link handler gives back. */
export interface LinkAnswer {
  readonly contentType: string
  readonly body: string | Uint8Array
}

export function jsonAnswer(value: unknown): LinkAnswer {
  return jsonTextAnswer(JSON.stringify(value))
}

/** For JSON whose exact bytes matter. */
export function jsonTextAnswer(text: string): LinkAnswer {
  return { contentType: 'application/json', body: text }
}

export function sendAnswer(response: ServerResponse, answer: LinkAnswer): void {
  send(response, 200, answer)
}

/** Sends the refusal; a failure that is none of ours tells the worker nothing but that. */
export function sendError(response: ServerResponse, thrown: unknown): void {
  const error = thrown instanceof LinkError ? thrown : new LinkError('internal', 'internal error')
  if (response.headersSent) response.destroy()
  else
    send(
      response,
      error.status,
      jsonAnswer({ error: { code: error.code, message: error.message } }),
    )
}

function send(response: ServerResponse, status: number, { contentType, body }: LinkAnswer): void {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  response.writeHead(status, { 'content-type': contentType, 'content-length': length })
  response.end(body)
}

/** Reads a JSON body of at most `maxBytes`. Throws `LinkError`. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > maxBytes) {
      throw new LinkError('request_too_large', `the body is over ${maxBytes} bytes`)
    }
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new LinkError('invalid_request', 'the body is not JSON')
  }
}
