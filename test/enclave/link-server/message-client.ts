import { once } from 'node:events'
import { connect } from 'node:tls'
import { WebSocket } from 'ws'
import { LINK_PATHS } from '../../../src/protocol/link.ts'
import {
  MESSAGE_KINDS,
  readFrame,
  writeFrames,
  type CallHead,
  type LinkMessage,
} from '../../../src/protocol/link-messages.ts'
import type { CertificatePair } from '../link-material.ts'

/** A worker's connection for messages. */
export interface MessageClient {
  readonly socket: WebSocket
  send(...messages: LinkMessage[]): void
  /** The next message of the daemon. */
  next(): Promise<LinkMessage>
  /** Resolves when the connection is closed. */
  readonly closed: Promise<true>
}

export async function openMessages(
  port: number,
  serverCertPem: string,
  { certPem, keyPem }: CertificatePair,
  path: string = LINK_PATHS.messages,
): Promise<MessageClient> {
  const socket = new WebSocket(`wss://enclave${path}`, {
    createConnection: () =>
      connect({
        host: '127.0.0.1',
        port,
        servername: 'enclave',
        ca: serverCertPem,
        cert: certPem,
        key: keyPem,
      }),
  })
  return clientOver(socket)
}

/** A connection that is being opened. Resolves once it is open. */
export async function clientOver(socket: WebSocket): Promise<MessageClient> {
  const closed = new Promise<true>((resolve) => socket.once('close', () => resolve(true)))
  const received: LinkMessage[] = []
  const awaited: ((message: LinkMessage) => void)[] = []
  socket.on('message', (data: Buffer) => {
    for (const message of readFrame(data)) {
      const tell = awaited.shift()
      if (tell === undefined) received.push(message)
      else tell(message)
    }
  })
  await once(socket, 'open')
  return {
    socket,
    closed,
    send(...messages) {
      for (const frame of writeFrames(messages)) socket.send(frame)
    },
    next() {
      const first = received.shift()
      if (first !== undefined) return Promise.resolve(first)
      return new Promise((resolve) => void awaited.push(resolve))
    },
  }
}

/** A call as a message. */
export function callMessage(id: number, head: CallHead | string, body = ''): LinkMessage {
  return {
    kind: MESSAGE_KINDS.call,
    id,
    head: typeof head === 'string' ? head : JSON.stringify(head),
    body: Buffer.from(body),
  }
}

export const leaveMessage = (id: number): LinkMessage => ({
  kind: MESSAGE_KINDS.cancel,
  id,
  head: '',
  body: new Uint8Array(0),
})

export const textOf = ({ body }: LinkMessage) => Buffer.from(body).toString()
