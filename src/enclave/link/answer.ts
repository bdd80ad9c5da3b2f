import { fromUtf8 } from '../../protocol/bytes.ts'
import { LinkError } from '../link-error.ts'
import type { LinkAnswer, LinkReply } from '../link-server/reply.ts'
import type { BodyReader } from '../read-body.ts'

export function jsonAnswer(value: unknown): LinkAnswer {
  return jsonTextAnswer(JSON.stringify(value))
}

/** An answer from JSON text. */
export function jsonTextAnswer(text: string): LinkAnswer {
  return { contentType: 'application/json', body: text }
}

/** The refusal for an error; of an unexpected one the worker learns only that it happened. */
export function refusal(thrown: unknown): LinkReply {
  const { status, code, message } =
    thrown instanceof LinkError ? thrown : new LinkError('internal', 'internal error')
  return { status, ...jsonAnswer({ error: { code, message } }) }
}

/**
 * Reads a body of at most `maxBytes` as text. Bytes that are not UTF-8 become U+FFFD.
 * @throws LinkError `request_too_large`, or `invalid_request` when the request breaks off
 */
export async function readText(body: BodyReader, maxBytes: number): Promise<string> {
  return (await body(maxBytes)).toString('utf8')
}

/**
 * Reads a JSON body of at most `maxBytes`.
 * @throws LinkError `request_too_large`, or `invalid_request` when the request breaks off or is not JSON in
 *   UTF-8
 */
export async function readJson(body: BodyReader, maxBytes: number): Promise<unknown> {
  const bytes = await body(maxBytes)
  try {
    return JSON.parse(fromUtf8(bytes))
  } catch {
    throw new LinkError('invalid_request', 'the body is not JSON')
  }
}
