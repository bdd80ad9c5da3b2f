import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface, type Interface } from 'node:readline'

/** The test's end of an account probe. */
export interface ProbeSession {
  /** Where the probe connects to. */
  readonly port: number
  /** Resolves when it is there. */
  readonly connected: Promise<void>
  /** Has it try something; answers `ok`, what it found, or the error's code. */
  ask(what: string, at?: string | number): Promise<unknown>
  close(): void
}

/** @param port to listen on, on loopback; any by default */
export async function openProbeSession(port = 0): Promise<ProbeSession> {
  const server = createServer()
  const arrived = Promise.withResolvers<{ socket: Socket; lines: Interface }>()
  server.once('connection', (socket) => {
    socket.on('error', () => {})
    arrived.resolve({ socket, lines: createInterface({ input: socket }) })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    connected: arrived.promise.then(() => undefined),
    async ask(what, at = '') {
      const { socket, lines } = await arrived.promise
      const answered = once(lines, 'line')
      socket.write(`${JSON.stringify({ do: what, at: String(at) })}\n`)
      const [line]: string[] = await answered
      return JSON.parse(line ?? '')
    },
    close() {
      server.close()
      void arrived.promise.then(({ socket }) => socket.destroy())
    },
  }
}
