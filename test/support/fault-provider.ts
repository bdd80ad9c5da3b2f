import { createHash, type Hash } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { listen } from './listen.ts'

/**
 * A provider that does what no HTTP library would let it do: it speaks over the bare socket, so that every
 * misconduct of the wire can be scripted. (The stand-in of `src/standin` is the friendly one.)
 */
export interface FaultProvider {
  readonly port: number
  /** Everything one upstream model was asked, oldest first. */
  calls(model: string): readonly ProviderCall[]
  close(): Promise<void>
}

/** One request that reached the provider. */
export interface ProviderCall {
  readonly model: string
  /** First segment of the path: which of the providers behind this server was meant. */
  readonly provider: string
  readonly stream: boolean
  /** 1 for the first request for this model at this provider. */
  readonly number: number
  readonly headers: string
  readonly body: string
  readonly wire: Wire
}

export type Script = (call: ProviderCall) => void | Promise<void>

/** The provider's side of one exchange, down to the last byte. */
export class Wire {
  /** SHA-256 of the body as the router's receipts name it: without transfer coding. */
  readonly #digest: Hash = createHash('sha256')
  readonly #socket: Socket
  readonly #onEnd: () => void
  readonly #declares: boolean
  /** Head lines and body of an answer whose length is to be declared, until it is known. */
  #held: { readonly head: string; readonly parts: Buffer[] } | undefined
  #chunked = false
  #ended = false

  /** @param declares gives answers a declared length instead of chunks, and sends them once it is known */
  constructor(socket: Socket, onEnd: () => void, declares = false) {
    this.#socket = socket
    this.#onEnd = onEnd
    this.#declares = declares
  }

  /** Body bytes written so far that the network has taken. */
  get bytesTaken(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  /** Whether the exchange is over, by either side's doing. */
  get over(): boolean {
    return this.#ended || this.#socket.destroyed
  }

  /** SHA-256 in hex of all body bytes sent. */
  digest(): string {
    return this.#digest.copy().digest('hex')
  }

  /** Status line and headers; the body is chunked unless a header gives its length. */
  head(
    status: number | string = 200,
    headers: Readonly<Record<string, string | number>> = {},
  ): void {
    const names = Object.keys(headers).map((name) => name.toLowerCase())
    this.#chunked = !names.includes('content-length')
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const line = typeof status === 'number' ? `${status} Scripted` : status
    const head = `HTTP/1.1 ${line}\r\n${lines.join('')}`
    if (this.#chunked && this.#declares) this.#held = { head, parts: [] }
    else this.raw(`${head}${this.#chunked ? CHUNKED : ''}\r\n`)
  }

  /** Body bytes, as one chunk. What a receipt speaks of is something else where they are encoded. */
  send(data: string | Uint8Array, digested = data): void {
    const bytes = Buffer.from(data)
    this.#digest.update(digested)
    if (this.#held !== undefined) return void this.#held.parts.push(bytes)
    if (!this.#chunked) return this.raw(bytes)
    this.raw(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF]))
  }

  /** Body bytes after a head of one's own, without transfer coding. */
  unframed(data: string | Uint8Array): void {
    this.#digest.update(data)
    this.raw(data)
  }

  /** Body bytes; resolves when the socket wants more. */
  async sendSlowly(data: string | Uint8Array): Promise<void> {
    this.send(data)
    await this.#drained()
  }

  /** Bytes as they are; resolves when the socket wants more. */
  async rawSlowly(bytes: string | Uint8Array): Promise<void> {
    this.raw(bytes)
    await this.#drained()
  }

  async #drained(): Promise<void> {
    const socket = this.#socket
    if (!socket.writableNeedDrain || socket.destroyed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    socket.once('drain', resolve).once('close', resolve)
    await promise
    socket.off('drain', resolve).off('close', resolve)
  }

  /** Ends the body properly; the connection stays for the next request. */
  end(): void {
    if (this.#held !== undefined) this.#declare(0)
    else if (this.#chunked) this.raw('0\r\n\r\n')
    this.#ended = true
    this.#onEnd()
  }

  /** A FIN, whatever was promised. */
  close(): void {
    this.#declare(1)
    this.#socket.end()
    this.#ended = true
  }

  /** A RST. */
  reset(): void {
    this.#declare(1)
    this.#socket.resetAndDestroy()
  }

  /** Sends what was held under a length that is so much more than its own. */
  #declare(missing: number): void {
    const held = this.#held
    if (held === undefined) return
    this.#held = undefined
    const body = Buffer.concat(held.parts)
    this.raw(`${held.head}content-length: ${body.length + missing}\r\n\r\n`)
    this.raw(body)
  }

  /** Bytes as they are. */
  raw(bytes: string | Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(bytes)
  }
}

const CHUNKED = 'transfer-encoding: chunked\r\n'
const CRLF = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')

export interface FaultProviderOptions {
  /** False for a provider under load, whose calls would fill the memory; `calls` is then empty. */
  readonly keepsCalls?: boolean
  /** Whether whole answers declare their length, where the script leaves that open; else they come in chunks. */
  readonly declares?: boolean
}

/** Starts the provider; `scriptFor` decides what a call gets. */
export async function startFaultProvider(
  scriptFor: (call: ProviderCall) => Script,
  { keepsCalls = true, declares = false }: FaultProviderOptions = {},
): Promise<FaultProvider> {
  const sockets = new Set<Socket>()
  const calls = new Map<string, ProviderCall[]>()
  const numbers = new Map<string, number>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    readRequests(socket, ({ path, headers, body }) => {
      const asked: { model?: string; stream?: boolean } = JSON.parse(body)
      const provider = path.split('/')[1] ?? ''
      const model = asked.model ?? ''
      const wire = new Wire(socket, () => socket.resume(), declares && asked.stream !== true)
      const number = (numbers.get(`${provider} ${model}`) ?? 0) + 1
      numbers.set(`${provider} ${model}`, number)
      const call = { model, provider, stream: asked.stream ?? false, number, headers, body, wire }
      if (keepsCalls) calls.set(model, [...(calls.get(model) ?? []), call])
      void scriptFor(call)(call)
    })
  })
  const port = await listen(server)
  return {
    port,
    calls: (model) => calls.get(model) ?? [],
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface RawRequest {
  readonly path: string
  readonly headers: string
  readonly body: string
}

/** Requests of one connection, each with a declared or chunked body. */
function readRequests(socket: Socket, take: (request: RawRequest) => void): void {
  let pending: Buffer = Buffer.alloc(0)
  socket.on('data', (data: Buffer) => {
    pending = Buffer.concat([pending, data])
    for (;;) {
      const headEnd = pending.indexOf(HEAD_END)
      if (headEnd < 0) return
      const headers = pending.subarray(0, headEnd).toString('latin1')
      const declared = Number(/^content-length: *(\d+)/im.exec(headers)?.[1] ?? 0)
      const bodyStart = headEnd + HEAD_END.length
      if (pending.length < bodyStart + declared) return
      const body = pending.subarray(bodyStart, bodyStart + declared).toString()
      pending = pending.subarray(bodyStart + declared)
      take({ path: headers.split(' ')[1] ?? '', headers, body })
    }
  })
}
