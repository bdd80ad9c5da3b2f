import type { IncomingMessage, ServerResponse } from 'node:http'
import { LinkError } from '../link-error.ts'
import { readBody } from '../read-body.ts'

/** The result of a link handler. */
export interface LinkAnswer {
  readonly contentType: string
  readonly body: string | Uint8Array
}

export function jsonAnswer(value: unknown): LinkAnswer {
  return jsonTextAnswer(JSON.stringify(value))
}

/** An answer from JSON text. */
export function jsonTextAnswer(text: string): LinkAnswer {
  return { contentType: 'application/json', body: text }
}

export function sendAnswer(response: ServerResponse, answer: LinkAnswer): void {
  send(response, 200, answer)
}

/** Sends the refusal; of an unexpected error the worker only learns that there was one. */
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

/**
 * Reads a body of at most `maxBytes` as text.
 * @throws LinkError `too_large` or `invalid_request` when the body is too large or not UTF-8
 */
export async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  return (await readBody(request, maxBytes)).toString('utf8')
}

/**
 * Reads a JSON body of at most `maxBytes`.
 * @throws LinkError `too_large` or `invalid_request` when the body is too large or not JSON
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const body = await readBody(request, maxBytes)
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new LinkError('invalid_request', 'the body is not JSON')
  }
}
