import { ChildProcess } from 'node:child_process'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { drainBeforeStop } from '../../../src/host/stack/drain-before-stop.ts'
import { listen } from '../../support/listen.ts'

/** A worker whose drain is answered with a status, and what happened to it in order. */
async function workerThat(status: number | 'silent') {
  const events: string[] = []
  const told = async (request: IncomingMessage) => {
    events.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    await text(request)
    events.push('told that it was stopped')
  }
  const over = Promise.withResolvers<string>()
  const server = createServer((request, response) => {
    if (status !== 'silent') response.writeHead(status).flushHeaders()
    void told(request).then(
      () => over.resolve('drained'),
      () => over.resolve('left'),
    )
  })
  const port = await listen(server)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const child = drainBeforeStop(
    {
      pid: 1,
      process: new ChildProcess(),
      ended: over.promise,
      stop: async (graceMs) => {
        events.push(`stopped within ${Math.ceil(graceMs / 1_000)} s`)
        await over.promise
      },
    },
    { port, token: 'secret' },
  )
  return { child, events }
}

test('a worker is told before it is stopped how soon it has to end what is open, and then that it was stopped', async () => {
  const { child, events } = await workerThat(200)
  await child.stop(30_000)
  expect(events).toEqual([
    'POST /?after_ms=25000 Bearer secret',
    'stopped within 30 s',
    'told that it was stopped',
  ])
})

test('a short time leaves it a third to do so', async () => {
  const { child, events } = await workerThat(200)
  await child.stop(3_000)
  expect(events[0]).toBe('POST /?after_ms=2000 Bearer secret')
})

test('a worker that refuses is stopped all the same', async () => {
  const { child, events } = await workerThat(403)
  await child.stop(30_000)
  expect(events.slice(0, 2)).toEqual(['POST /?after_ms=25000 Bearer secret', 'stopped within 30 s'])
})

test('one that does not answer is stopped within its time all the same', async () => {
  const { child, events } = await workerThat('silent')
  await child.stop(3_000)
  expect(events.slice(0, 2)).toEqual(['POST /?after_ms=2000 Bearer secret', 'stopped within 2 s'])
})

test('a worker without time to drain is not told', async () => {
  const ended = Promise.resolve('signal SIGKILL')
  const stops: number[] = []
  const stop = async (graceMs: number) => void stops.push(Math.ceil(graceMs / 1_000))
  const worker = { pid: 1, process: new ChildProcess(), ended, stop }
  await drainBeforeStop(worker, { port: 1, token: 'secret' }).stop(0)
  // Nobody listens on this port.
  await drainBeforeStop(worker, { port: 1, token: 'secret' }).stop(30_000)
  expect(stops).toEqual([0, 30])
})
