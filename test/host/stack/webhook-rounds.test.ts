import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { startWebhookRounds } from '../../../src/host/stack/webhook-rounds.ts'
import { listen } from '../../support/listen.ts'

test('a worker is asked again and again, one round at a time, with the admin token, until the end', async () => {
  const asked: string[] = []
  let open = 0
  let most = 0
  const third = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    open += 1
    most = Math.max(most, open)
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    if (asked.length >= 3) third.resolve()
    setTimeout(() => {
      open -= 1
      response.writeHead(asked.length === 2 ? 500 : 200).end('{}')
    }, 20)
  })
  const port = await listen(server)
  onTestFinished(() => void server.close())
  const target = { baseUrl: `http://127.0.0.1:${port}`, adminToken: 'token' }
  const end = startWebhookRounds(() => target, 5)
  await third.promise
  end()
  expect(new Set(asked)).toEqual(new Set(['POST /admin/webhooks/run Bearer token']))
  expect(most).toBe(1)
})

test('no request is made while there is no address to ask', async () => {
  let looks = 0
  const looked = Promise.withResolvers<void>()
  const end = startWebhookRounds(() => {
    looks += 1
    if (looks === 3) looked.resolve()
    return undefined
  }, 5)
  await looked.promise
  end()
  expect(looks).toBe(3)
})
