import { connect, type Socket } from 'node:net'

/** A client on the bare socket, for bytes that no HTTP library would send, and for abrupt disconnects. */
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
      // Megabytes are counted but not kept: the text is only needed for short answers.
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

  /** Resolves when the text has arrived, the connection has ended, or the time is over, with whether it arrived. */
  async hears(text: string, timeoutMs = 10_000): Promise<boolean> {
    const deadline = performance.now() + timeoutMs
    while (!this.#received.includes(text) && !this.closed && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return this.#received.includes(text)
  }

  /** Stops reading, so that everything that follows has to wait. */
  pause(): void {
    this.#socket.pause()
  }

  /** Reads on. */
  resume(): void {
    this.#socket.resume()
  }

  /** Reads so many bytes more, as far as they come within a second, and stops again. */
  async take(bytes: number): Promise<void> {
    const enough = this.#bytes + bytes
    const deadline = performance.now() + 1_000
    this.resume()
    while (this.#bytes < enough && !this.closed && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    this.pause()
  }

  /** A FIN: nothing more is sent, and nothing that arrives is read. */
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
