import type { ServerResponse } from 'node:http'
import { LinkError } from '../link-error.ts'
import type { BodyReader } from '../read-body.ts'

/** The result of a link handler. */
export interface LinkAnswer {
  readonly contentType: string
  readonly body: string | Uint8Array
}

/** A whole answer of the link. */
export interface LinkReply extends LinkAnswer {
  readonly status: number
}

export function jsonAnswer(value: unknown): LinkAnswer {
  return jsonTextAnswer(JSON.stringify(value))
}

/** An answer from JSON text. */
export function jsonTextAnswer(text: string): LinkAnswer {
  return { contentType: 'application/json', body: text }
}

/** The refusal; of an unexpected error the worker only learns that there was one. */
export function refusal(thrown: unknown): LinkReply {
  const { status, code, message } =
    thrown instanceof LinkError ? thrown : new LinkError('internal', 'internal error')
  return { status, ...jsonAnswer({ error: { code, message } }) }
}

/** Sends the reply, or breaks off where another answer has begun. */
export function sendReply(
  response: ServerResponse,
  { status, contentType, body }: LinkReply,
): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  response.writeHead(status, { 'content-type': contentType, 'content-length': length })
  response.end(body)
}

/**
 * Reads a body of at most `maxBytes` as text.
 * @throws LinkError `too_large` or `invalid_request` when the body is too large or not UTF-8
 */
export async function readText(body: BodyReader, maxBytes: number): Promise<string> {
  return (await body(maxBytes)).toString('utf8')
}

/**
 * Reads a JSON body of at most `maxBytes`.
 * @throws LinkError `too_large` or `invalid_request` when the body is too large or not JSON
 */
export async function readJson(body: BodyReader, maxBytes: number): Promise<unknown> {
  const text = await readText(body, maxBytes)
  try {
    return JSON.parse(text)
  } catch {
    throw new LinkError('invalid_request', 'the body is not JSON')
  }
}
