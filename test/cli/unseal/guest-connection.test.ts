import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import { afterEach, describe, expect, test } from 'vitest'
import { connectGuest } from '../../../src/cli/unseal/guest-connection.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { listen } from '../../support/listen.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function startRouter(answer: RequestListener): Promise<string> {
  const { keyPem: key, certPem: cert } = await makeTlsIdentity([], new Date())
  const server = createServer({ key, cert }, answer)
  servers.push(server)
  return `https://127.0.0.1:${await listen(server)}`
}

const NEVER = 3_600_000

describe('the connection to a router that is unsealed', () => {
  test('ends an answer that never ends, however often a byte of it comes', async () => {
    const address = await startRouter((_request, response) => {
      const timer = setInterval(() => response.write(' '), 20)
      response.once('close', () => clearInterval(timer))
    })
    const limits = { getMs: 300, postMs: NEVER }
    const connection = await connectGuest(address, limits)
    await expect(connection.get('/healthz')).rejects.toThrow(
      `no answer from ${address}: not within 0.3 s`,
    )
    connection.close()
  })

  test.each(['https', 'http'])('takes no password along in an %s address', async (scheme) => {
    await expect(connectGuest(`${scheme}://user:word@127.0.0.1:1`)).rejects.toThrow(
      'leave user name and password out of the address: whoever answers there would get them, proven or not',
    )
  })

  test('ends a request that is not answered', async () => {
    const address = await startRouter(() => {})
    const connection = await connectGuest(address, { getMs: NEVER, postMs: 50 })
    await expect(connection.post('/unseal', 'document')).rejects.toThrow(
      `no answer from ${address}: not within 0.05 s`,
    )
    connection.close()
  })

  test('ends the next request where a router closes the connection after an answer, and no process', async () => {
    const address = await startRouter((_request, response) => {
      response.setHeader('connection', 'close')
      response.end('{"status":"sealed"}')
    })
    const connection = await connectGuest(address)
    expect((await connection.get('/healthz')).status).toBe(200)
    await expect(connection.get('/.well-known/trust.json')).rejects.toThrow(
      `no answer from ${address}: the router closed the connection that was proven`,
    )
    connection.close()
  })

  test('waits longer for secrets to take effect than for evidence', async () => {
    const limits = { getMs: 50, postMs: NEVER }
    const address = await startRouter((_request, response) => {
      setTimeout(() => response.end('done'), 2 * limits.getMs)
    })
    const connection = await connectGuest(address, limits)
    const { status, body } = await connection.post('/unseal', 'document')
    expect([status, body.toString()]).toEqual([200, 'done'])
    connection.close()
  })
})
