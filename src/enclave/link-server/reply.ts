import type { ServerResponse } from 'node:http'

/** The result of a link handler. */
export interface LinkAnswer {
  readonly contentType: string
  readonly body: string | Uint8Array
}

/** A complete answer of the link. */
export interface LinkReply extends LinkAnswer {
  readonly status: number
}

/** Sends the reply; if another answer has begun, breaks that off instead. */
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
