import type { IncomingMessage, ServerResponse } from 'node:http'
import { LinkError } from '../link-error.ts'

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

/**
 * Reads a body of at most `maxBytes`. Uses events, because iterating over a request costs as much as signing a receipt.
 * @throws LinkError `request_too_large` when the body is larger
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      size += chunk.length
      chunks.push(chunk)
      if (size <= maxBytes) return
      // The rest of the body is discarded, so that the worker can read the refusal.
      request.off('data', take).off('end', finish).resume()
      reject(new LinkError('request_too_large', `the body is over ${maxBytes} bytes`))
    }
    const finish = (): void => resolve(Buffer.concat(chunks, size))
    request.on('data', take).on('end', finish).on('error', reject)
  })
}
