import type { Bytes } from '../../protocol/bytes.ts'
import { writeError, type ErrorFormat } from './error-format.ts'
import type { ApiError } from './errors.ts'

/** All responses of the worker are built here. */

type HeaderFields = Readonly<Record<string, string>>

/**
 * Headers that every answer carries. They are passed to the constructor of each `Response`: setting one later costs a
 * platform call.
 */
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000',
}

const UNCACHED = { ...SECURITY_HEADERS, 'cache-control': 'no-store' }

/** Built once: the platform copies a `Headers` object in half the time that it takes to read a plain object. */
const JSON_HEADERS = new Headers({ ...UNCACHED, 'content-type': 'application/json' })

/** A JSON answer. */
export function json(body: unknown, headers: HeaderFields = {}, status = 200): Response {
  return Response.json(body, { status, headers: { ...UNCACHED, ...headers } })
}

/** A JSON answer from exact bytes. */
export function jsonText(body: Bytes, headers: HeaderFields = {}): Response {
  const answer = new Response(body, { headers: JSON_HEADERS })
  const own = { ...lengthOf(body), ...headers }
  for (const [name, value] of Object.entries(own)) answer.headers.set(name, value)
  return answer
}

/** The `content-length` of a body, so that code that passes the answer on knows its size. */
function lengthOf(body: Bytes): HeaderFields {
  return { 'content-length': String(body.length) }
}

/** An answer of a media type that is neither text nor JSON. */
export function binary(body: Bytes, mediaType: string): Response {
  return new Response(body, { headers: { ...UNCACHED, 'content-type': mediaType } })
}

/** A file to be saved. */
export function attachment(body: ReadableStream, mediaType: string, fileName: string): Response {
  const disposition = `attachment; filename="${fileName}"`
  const fixed = { 'content-type': mediaType, 'content-disposition': disposition }
  return new Response(body, { headers: { ...UNCACHED, ...fixed } })
}

/** The same answer with another body. */
export function withBody(
  { status, statusText }: Response,
  body: ReadableStream<Uint8Array>,
  headers: Headers,
): Response {
  return new Response(body, { status, statusText, headers })
}

/** A plain-text answer, UTF-8. */
export function text(body: string | Bytes, headers: HeaderFields = {}): Response {
  const fixed = { ...UNCACHED, 'content-type': 'text/plain; charset=utf-8' }
  return new Response(body, { headers: { ...fixed, ...headers } })
}

const EVENT_STREAM_HEADERS = {
  ...SECURITY_HEADERS,
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/** A page for browsers. */
export function html(body: string, headers: HeaderFields = {}): Response {
  const fixed = {
    ...SECURITY_HEADERS,
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
  }
  return new Response(body, { headers: { ...fixed, ...headers } })
}

/** A server-sent event stream that proxies should neither buffer nor compress; the body may be added later. */
export function eventStream(body: ReadableStream | null, headers: HeaderFields = {}): Response {
  return new Response(body, { headers: { ...EVENT_STREAM_HEADERS, ...headers } })
}

/** A stored answer with its original headers. */
export function replayed(body: Bytes, headers: HeaderFields): Response {
  const fixed = { ...SECURITY_HEADERS, ...lengthOf(body), 'idempotency-replayed': 'true' }
  return new Response(body, { headers: { ...headers, ...fixed } })
}

/** An answer without a body, for CORS preflights. */
export function noContent(): Response {
  return new Response(null, { status: 204, headers: SECURITY_HEADERS })
}

/** An answer with an empty body that ends once `done` resolves. */
export function answerUntil(done: () => Promise<void>): Response {
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      await done()
      controller.close()
    },
  })
  return new Response(body, { headers: UNCACHED })
}

/** The error of `GET /attestation` where there is no evidence; it has its own format. */
export function attestationUnavailable(): Response {
  return json({ error: 'attestation_unavailable' }, { 'retry-after': '5' }, 503)
}

/** An error answer. */
export function errorReply(error: ApiError, format: ErrorFormat = 'openai'): Response {
  const { status, body, headers } = writeError(error, format)
  return json(body, headers, status)
}

/** The answer to HEAD: all headers of the answer to GET, including the length of the body, and no body. */
export async function withoutBody(answer: Response): Promise<Response> {
  const headers = new Headers(answer.headers)
  headers.set('content-length', String((await answer.arrayBuffer()).byteLength))
  return new Response(null, { status: answer.status, headers })
}
