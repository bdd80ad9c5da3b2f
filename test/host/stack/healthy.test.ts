import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { untilHealthy } from '../../../src/host/stack/healthy.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'
import { listen } from '../../support/listen.ts'

test('a router that does not become healthy is a start that failed, told in one sentence', async () => {
  const server = createServer((_request, response) => {
    response.statusCode = 503
    response.end('{"error": {"message": "The storage cannot be reached."}}')
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const failed = await untilHealthy(url, 500).catch((error: unknown) => error)
  expect(failed).toBeInstanceOf(StartError)
  expect(failed).toMatchObject({
    message: expect.stringMatching(/^the router is not healthy after 0\.5 s: /),
  })
  server.close()
})
