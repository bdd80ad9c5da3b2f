import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

/** Bodies up to this are collected, and sent with their head in one write: each write costs as much as its bytes. */
const SMALL_BYTES = 64 * 1024

/** Whether a message declares a body so short that it is passed on at once. */
export function isSmall({ 'content-length': length }: IncomingHttpHeaders): boolean {
  return length !== undefined && Number(length) <= SMALL_BYTES
}

/**
 * Sends a request's body to the provider, no faster than it is read.
 * @returns a function that discards what is left of it, so that a refusal can be read on the same connection
 */
export function sendBody(request: IncomingMessage, sent: ClientRequest): () => void {
  if (isSmall(request.headers)) {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.once('end', () => sent.end(joined(parts)))
    return () => {}
  }
  const discard = () => {
    request.unpipe(sent)
    request.resume()
  }
  sent.on('error', discard)
  request.pipe(sent)
  return discard
}

/** Relays a small answer whose head is written but not sent. One that is cut off destroys the response, after what came. */
export function relayAtOnce(answer: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = []
  response.once('close', () => answer.destroy())
  // A response that is closed already reports that by itself.
  response.on('error', () => {})
  answer.on('data', (part: Buffer) => parts.push(part))
  answer.once('end', () => response.end(joined(parts)))
  answer.once('close', () => {
    if (answer.readableEnded || response.destroyed) return
    response.flushHeaders()
    response.write(joined(parts), () => response.destroy())
  })
}

function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts)
}
