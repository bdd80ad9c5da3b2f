import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createServer } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { createRouterClient } from '../../../src/cli/verify/router-client.ts'
import { InputError } from '../../../src/cli/verify/input-error.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'

const toClose: (() => void)[] = []
afterEach(() => toClose.splice(0).forEach((close) => close()))

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc'
/** A TLS record that is longer than any may be. */
const RECORD = Buffer.concat([Uint8Array.of(23, 3, 3, 0xff, 0xff), Buffer.alloc(50)])

test('a router that breaks TLS after more answers than were asked for ends no process: an uncaught error fails this test', async () => {
  const { keyPem: key, certPem: cert } = await makeTlsIdentity([], new Date())
  const server = createServer({ key, cert })
  let below: Socket | undefined
  server.on('connection', (socket) => {
    below = socket.on('error', () => {})
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      socket.write(ANSWER + ANSWER)
      setTimeout(() => below?.end(RECORD), 1)
    })
  })
  toClose.push(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const client = createRouterClient(`https://127.0.0.1:${address.port}`, 'evidence')
  for (let i = 0; i < 40; i++) {
    const outcome = client.getTogether('/a', '/b').then(
      () => 'answered',
      (error: unknown) => (error instanceof InputError ? 'refused' : 'broken'),
    )
    expect(['answered', 'refused']).toContain(await outcome)
  }
})
