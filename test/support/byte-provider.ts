import { setImmediate as turn } from 'node:timers/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { DaemonTls } from '../../src/protocol/boot.ts'
import { listen } from './listen.ts'

/** What a provider does with one request, down to the bytes under TLS. */
export type ByteScript = (tls: TLSSocket, wire: Socket) => void | Promise<void>

/** Writes one part after another, each in a turn of the event loop of its own. */
export const sendParts =
  (...parts: readonly string[]): ByteScript =>
  async (tls) => {
    for (const part of parts) {
      tls.write(part)
      await turn()
    }
  }

/** A provider behind TLS that answers every request with what the script of the moment sends. */
export interface ByteProvider {
  readonly port: number
  /** For requests from now on. */
  script: ByteScript
  close(): Promise<void>
}

export async function startByteProvider(
  identity: DaemonTls,
  first: ByteScript,
): Promise<ByteProvider> {
  const open = new Set<Socket>()
  const provider = { port: 0, script: first, close }
  const server: Server = createServer((wire) => {
    open.add(wire)
    wire.on('error', () => {})
    wire.once('close', () => open.delete(wire))
    const tls = new TLSSocket(wire, {
      isServer: true,
      key: identity.keyPem,
      cert: identity.certPem,
    })
    tls.on('error', () => {})
    let request = ''
    tls.on('data', (data: Buffer) => {
      request += data.toString('latin1')
      if (!wholeRequest(request)) return
      request = ''
      void provider.script(tls, wire)
    })
  })
  provider.port = await listen(server)
  return provider

  async function close(): Promise<void> {
    for (const wire of open) wire.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
}

/** Bodies of these tests are chunked or absent. */
function wholeRequest(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const chunked = /^transfer-encoding: chunked/im.test(text.slice(0, end))
  const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, end))?.[1] ?? 0)
  return chunked ? text.endsWith('0\r\n\r\n') : text.length >= end + 4 + length
}
