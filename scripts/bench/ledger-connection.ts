import { connect } from 'node:tls'
import { WebSocket } from 'ws'
import type { LinkEnd } from '../../src/host/stack/link-binding.ts'
import {
  MESSAGE_KINDS,
  MESSAGES_PATH,
  readFrame,
  writeFrames,
} from '../../src/protocol/link-messages.ts'

interface Waiting {
  readonly resolve: (body: string) => void
  readonly reject: (error: Error) => void
}

/** A message connection to a ledger process; both ends pin the other's certificate, as on a worker's connection. */
export class LedgerConnection {
  readonly #socket: WebSocket
  readonly #open: Promise<void>
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0

  constructor(link: LinkEnd) {
    this.#socket = new WebSocket(`wss://ledger${MESSAGES_PATH}`, {
      perMessageDeflate: false,
      createConnection: () =>
        connect({
          port: link.port,
          host: '127.0.0.1',
          servername: link.host,
          ca: link.serverCertPem,
          cert: link.worker.certPem,
          key: link.worker.keyPem,
          minVersion: 'TLSv1.3',
        }),
    })
    this.#open = new Promise((resolve) => {
      this.#socket.once('open', resolve)
      this.#socket.once('close', resolve)
    })
    this.#socket.on('message', (frame: Buffer) => this.#take(frame))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the connection ended'))
      this.#waiting.clear()
    })
  }

  /**
   * Makes a call, and returns the body of its answer.
   * @throws Error when the connection is lost or the status is not 200
   */
  async call(path: string, body: string): Promise<string> {
    await this.#open
    if (this.#socket.readyState !== WebSocket.OPEN) throw new Error('the connection ended')
    this.#lastId += 1
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#waiting.set(this.#lastId, { resolve, reject })
    const head = JSON.stringify({ path, headers: {} })
    const message = { kind: MESSAGE_KINDS.call, id: this.#lastId, head, body: Buffer.from(body) }
    for (const frame of writeFrames([message])) this.#socket.send(frame)
    return promise
  }

  close(): void {
    this.#socket.terminate()
  }

  #take(frame: Buffer): void {
    for (const { id, kind, head, body } of readFrame(frame)) {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (kind === MESSAGE_KINDS.answer && head.startsWith('{"status":200,')) {
        waiting?.resolve(Buffer.from(body.buffer, body.byteOffset, body.length).toString())
      } else waiting?.reject(new Error(`refused: ${head}`))
    }
  }
}
