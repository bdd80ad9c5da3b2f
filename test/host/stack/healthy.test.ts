import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { untilHealthy } from '../../../src/host/stack/healthy.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'
import { listen } from '../../support/listen.ts'

test('a router that does not become healthy is a start that failed, told in one sentence with its last answer, and once before', async () => {
  const server = createServer((_request, response) => {
    response.statusCode = 503
    response.end('{"error": {"message": "The storage cannot be reached."}}')
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  try {
    const told: string[] = []
    const notice = { afterMs: 500, tell: (last: string) => void told.push(last) }
    await expect(untilHealthy(url, 2_000, notice)).rejects.toThrow(
      new StartError(
        'the router is not healthy after 2 s: status 503: The storage cannot be reached.',
      ),
    )
    expect(told).toEqual(['status 503: The storage cannot be reached.'])
  } finally {
    server.close()
  }
})

test('where nothing listens, it says so', async () => {
  const server = createServer()
  const url = `http://127.0.0.1:${await listen(server)}`
  await new Promise((resolve) => void server.close(resolve))
  await expect(untilHealthy(url, 500)).rejects.toThrow(
    new StartError('the router is not healthy after 0.5 s: no connection'),
  )
})
