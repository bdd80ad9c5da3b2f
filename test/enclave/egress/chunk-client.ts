import { once } from 'node:events'
import { WebSocket, WebSocketServer } from 'ws'
import type { StreamRecord } from '../../../src/protocol/stream-record.ts'
import { MESSAGE_KINDS, printTaken, type LinkMessage } from '../../../src/protocol/link-messages.ts'
import { clientOver, type MessageClient } from '../link-server/message-client.ts'

export interface ChunkClient extends MessageClient {
  taken(stream: number, bytes: number): void
  cut(stream: number): void
  /** The daemon's end of the connection. */
  readonly accepted: WebSocket
  close(): Promise<void>
}

const message = (kind: LinkMessage['kind'], id: number, body = new Uint8Array(0)) => ({
  kind,
  id,
  head: '',
  body,
})

/**
 * A worker's connection for chunks, without TLS.
 * @param accept is given the daemon's end
 */
export async function openChunkClient(accept: (socket: WebSocket) => void): Promise<ChunkClient> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  await once(server, 'listening')
  const accepted = new Promise<WebSocket>((resolve) => {
    server.once('connection', (socket) => {
      accept(socket)
      resolve(socket)
    })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const client = await clientOver(new WebSocket(`ws://127.0.0.1:${address.port}`))
  return {
    ...client,
    accepted: await accepted,
    taken: (stream, bytes) => client.send(message(MESSAGE_KINDS.taken, stream, printTaken(bytes))),
    cut: (stream) => client.send(message(MESSAGE_KINDS.cut, stream)),
    close: () =>
      new Promise((resolve) => {
        client.socket.terminate()
        server.close(() => resolve())
      }),
  }
}

/** Takes all of one stream, up to its end. */
export async function readAll(client: ChunkClient, stream: number) {
  const chunks: Uint8Array[] = []
  for (;;) {
    const { kind, id, body } = await client.next()
    if (id !== stream) throw new Error('a message of another stream')
    if (kind === MESSAGE_KINDS.end) return { bytes: Buffer.concat(chunks), record: recordOf(body) }
    chunks.push(body)
    client.taken(stream, body.length)
  }
}

/** Undefined where it is to be asked for. */
export function recordOf(body: Uint8Array): StreamRecord | undefined {
  return body.length === 0 ? undefined : JSON.parse(Buffer.from(body).toString())
}

export const RECORD: StreamRecord = {
  ending: { kind: 'complete' },
  finish_reason: 'stop',
  counts: { prompt: 7, completion: 5, uncounted_text_bytes: 0 },
  tail: { events: 0, blocks: 0, open: null, output: [] },
  provider_response_id: null,
  provider_sha256: 'a'.repeat(64),
  client_sha256: 'b'.repeat(64),
}

/** A record in so many bytes of JSON. */
export function recordIn(bytes: number): StreamRecord {
  const given = (text: string) => ({ ...RECORD, tail: { ...RECORD.tail, output: [{ text }] } })
  return given('x'.repeat(bytes - JSON.stringify(given('')).length))
}
