import type { BatchDeps } from '../batching/batcher.ts'
import { startDeadline } from '../batching/deadline-timer.ts'
import { MessageConnection, type LinkSocket, type SmallCall } from './message-connection.ts'

/** Where a connection for messages is opened. */
export interface MessageTarget {
  /** A service on the other side of the link. */
  readonly binding: { fetch(url: string, init: RequestInit): Promise<Response> }
  /** Of the upgrade to a WebSocket. */
  readonly url: string
}

/** No connection is opened sooner than this after the one before was, ms. */
const REOPEN_MS = 1_000

const OPEN_TIMEOUT_MS = 3_000

/** The one connection for messages to another process, opened when it is first asked for and again after it has ended. */
export class KeptConnection {
  readonly #target: MessageTarget
  readonly #host: BatchDeps
  readonly #ended: (calls: number) => void
  #connection: MessageConnection | undefined
  #openedAt = Number.NEGATIVE_INFINITY

  /** @param ended called when an open connection has ended, with the number of its open calls */
  constructor(target: MessageTarget, host: BatchDeps, ended: (calls: number) => void) {
    this.#target = target
    this.#host = host
    this.#ended = ended
  }

  /** The connection, where it takes that call of the current request now. If there is none, one is opened for later calls. */
  forCall(call: SmallCall): MessageConnection | undefined {
    const connection = this.#connection
    if (connection === undefined || connection.state === 'ended') this.#open()
    return connection?.takes(call) === true ? connection : undefined
  }

  #open(): void {
    const now = this.#host.now()
    if (Math.abs(now - this.#openedAt) < REOPEN_MS) return
    this.#openedAt = now
    this.#connection = new MessageConnection(this.#host, this.#ended)
    this.#host.keepAlive(this.#connection.run(() => this.#upgrade()))
  }

  async #upgrade(): Promise<LinkSocket> {
    const { binding, url } = this.#target
    const controller = new AbortController()
    const deadline = startDeadline(OPEN_TIMEOUT_MS, this.#host.now, () => controller.abort())
    try {
      const response: Response & { webSocket?: LinkSocket | null } = await binding.fetch(url, {
        headers: { upgrade: 'websocket' },
        signal: controller.signal,
      })
      const { webSocket } = response
      if (webSocket) return webSocket
      await response.body?.cancel()
      throw new Error('no messages are taken there')
    } finally {
      deadline.stop()
    }
  }
}
