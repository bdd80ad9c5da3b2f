import type { IncomingMessage } from 'node:http'
import type { Server } from 'node:https'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { CHUNKS_PATH, MAX_MESSAGE_BYTES, MESSAGES_PATH } from '../../protocol/link-messages.ts'
import { serveMessages, type MessageListener } from './message-server.ts'

/** Handlers for connections that are upgraded to a WebSocket. A connection without a handler is closed. */
export interface UpgradeListeners {
  /** Answers calls that come as messages. */
  readonly messages?: MessageListener | undefined
  /** Sends chunks of streams over the connection with that id. */
  readonly chunks?: ((id: string, socket: WebSocket) => void) | undefined
}

const CHUNKS = new RegExp(`^${CHUNKS_PATH}/(?<id>[0-9a-f-]{36})$`)

/** Upgrades connections of a link server to WebSockets on request. The server admits only its peer. */
export function acceptUpgrades(server: Server, listeners: UpgradeListeners): { close(): void } {
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const serve = servantOf(request.url ?? '', listeners)
    if (serve === undefined) socket.destroy()
    else sockets.handleUpgrade(request, socket, head, serve)
  })
  return {
    close() {
      for (const socket of sockets.clients) socket.terminate()
    },
  }
}

function servantOf(
  url: string,
  { messages, chunks }: UpgradeListeners,
): ((socket: WebSocket) => void) | undefined {
  if (url === MESSAGES_PATH) return messages && ((socket) => serveMessages(socket, messages))
  const id = CHUNKS.exec(url)?.groups?.['id']
  return chunks && id !== undefined ? (socket) => chunks(id, socket) : undefined
}
