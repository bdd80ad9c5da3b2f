import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { clientOf, startFakeRouter } from '../support/fake-router.ts'
import { makeWorld, type World } from '../support/synthetic-world.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

// The router serves `/v1/chat/completions/` as `/v1/chat/completions` (itty-router's patterns end in `/*$`).
test.each(['/v1/chat/completions', '/v1/chat/completions/'])(
  'requireReceipt holds at %s',
  async (path) => {
    const host = await startFakeRouter(world, (_request, response) => {
      response.setHeader('content-type', 'application/json')
      response.end('{"choices":[{"message":{"content":"no receipt at all"}}]}')
    })
    const { options, deps } = clientOf(world, host, { requireReceipt: true })
    const client = createClient(options, deps)
    const answer = await client.fetch(`${host.baseURL}${path}`, { method: 'POST', body: '{}' })
    const read = await answer.text().then(
      () => 'accepted',
      (error: { code?: string }) => error.code,
    )
    await client.close()
    host.close()
    expect(read).toBe('receipt_refused')
  },
)
