import { once } from 'node:events'
import { createServer } from 'node:tls'
import { afterEach, expect, it } from 'vitest'
import { openTls } from '../../../src/client/node/open-tls.ts'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'

const toClose: (() => void)[] = []
afterEach(() => toClose.splice(0).forEach((close) => close()))

it('a connection that its peer resets while nobody asks anything over it is closed, and ends no process', async () => {
  const { keyPem, certPem } = (await makeLinkCertificates(Date.now())).server
  const server = createServer({ key: keyPem, cert: certPem })
  // The connection below TLS: of a TLS socket only the session would be ended.
  server.on('connection', (below) => {
    server.once('secureConnection', () => setTimeout(() => below.resetAndDestroy(), 50))
  })
  toClose.push(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const socket = await openTls(new URL(`https://127.0.0.1:${address.port}`))
  // Not `once(socket, 'close')`, which would listen for errors, too.
  await new Promise<void>((resolve) => void socket.on('close', () => resolve()))
  expect(socket.destroyed).toBe(true)
  expect(socket.errored).toMatchObject({ code: 'ECONNRESET' })
})
