import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebSocket } from 'ws'
import type { Bytes } from '../protocol/bytes.ts'
import type { StreamRecord } from '../protocol/stream-record.ts'
import { LinkError } from './link-error.ts'
import type { MessageCaller } from './link-server/message-caller.ts'

/** Makes calls to providers; to attested ones over connections that are pinned to their keys. */
export interface Egress {
  /**
   * Carries a call; request and answer are streamed.
   * @throws LinkError before any answer has begun
   */
  carry(call: EgressCall): Promise<void>
  /**
   * Carries a POST that came as a message. An answer that is not small waits to be fetched over HTTP.
   * @throws LinkError before any answer has begun
   */
  carryMessage(call: MessageEgressCall): Promise<void>
  /**
   * Sends a waiting answer.
   * @throws LinkError `not_found` when none waits under that id
   */
  sendWaiting(id: string, response: ServerResponse): void
  /**
   * Ends a stream whose chunks are written here, if it is still open.
   * @returns its record; undefined where no stream of that name is known
   */
  endStream(stream: string): StreamRecord | undefined
  /** Accepts a worker's chunk connection. Streams that are requested with its id send their chunks over it. */
  readonly sendChunks: (id: string, socket: WebSocket) => void
  /**
   * Fetches a small document of the provider, over a pinned connection. Undefined when there is no proof or no answer.
   */
  get(
    provider: string,
    request: EgressRequest,
  ): Promise<{ status: number; body: Bytes } | undefined>
  /** Closes every idle connection. */
  close(): void
}

export interface EgressCall {
  readonly provider: string
  /** Path and query below the provider's `base_url`. */
  readonly path: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export interface MessageEgressCall {
  readonly provider: string
  /** Path and query below the provider's `base_url`. */
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** `CallHead.whole`. */
  readonly whole?: unknown
  readonly caller: MessageCaller
}

export interface EgressRequest {
  readonly path: string
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/**
 * Splits `<provider>/<path>`.
 * @throws LinkError `invalid_request` when it does not have this form
 */
export function parseEgressTarget(
  rest: string,
  search: string,
): { provider: string; path: string } {
  const match = /^\/(?<provider>[A-Za-z0-9._-]+)(?<path>\/.*)?$/.exec(rest)
  const provider = match?.groups?.['provider']
  if (provider === undefined) throw new LinkError('invalid_request', 'the path names no provider')
  return { provider, path: `${match?.groups?.['path'] ?? '/'}${search}` }
}
