import { connect, type Socket } from 'node:net'

/** A client down at the socket, for what no HTTP library would send and how no library would leave. */
export class RawClient {
  readonly #socket: Socket
  #received = ''
  #bytes = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (data: Buffer) => {
      this.#bytes += data.length
      // Megabytes are counted and not kept: who asks for the text asks for little.
      if (this.#received.length < KEPT_CHARACTERS) this.#received += data.toString('latin1')
    })
  }

  static async connect(baseUrl: string): Promise<RawClient> {
    const { hostname, port } = new URL(baseUrl)
    const socket = connect({ host: hostname, port: Number(port) })
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new RawClient(socket)
  }

  /** The beginning of what came, headers included. */
  get received(): string {
    return this.#received
  }

  get bytesReceived(): number {
    return this.#bytes
  }

  get closed(): boolean {
    return this.#socket.destroyed || this.#socket.readableEnded
  }

  send(data: string | Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(data)
  }

  /** Resolves when the text has come, the connection has ended, or the time is over; tells whether it came. */
  async hears(text: string, timeoutMs = 10_000): Promise<boolean> {
    const deadline = performance.now() + timeoutMs
    while (!this.#received.includes(text) && !this.closed && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return this.#received.includes(text)
  }

  /** Reads no more, so that everything behind it has to wait. */
  pause(): void {
    this.#socket.pause()
  }

  /** A FIN: no more is sent, and none of what comes is read. */
  leave(): void {
    this.#socket.destroy()
  }

  /** A RST. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }
}

const KEPT_CHARACTERS = 1024 * 1024

/** A request as bytes. */
export function rawRequest(
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>>,
  body = '',
): string {
  const lines = Object.entries({ host: 'router.test', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}
