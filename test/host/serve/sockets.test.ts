import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { openSockets, type Sockets } from '../../../src/host/serve/sockets.ts'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'
import { errorOf } from '../../support/answers.ts'
import { getOverTls } from '../../support/serve.ts'

const ANY = { host: '127.0.0.1', port: 0 }

let sockets: Sockets

afterEach(() => sockets.close())

describe('the sockets of a router', () => {
  test('let clients wait while nobody accepts, and then answer them 503', async () => {
    sockets = await openSockets({ http: ANY, https: ANY, workers: 1 })
    let answered = false
    const waiting = fetch(`http://127.0.0.1:${sockets.httpPort}/v1/models`).finally(() => {
      answered = true
    })
    await delay(300)
    expect(answered).toBe(false)
    sockets.refuse((await makeLinkCertificates(Date.now())).server)
    const answer = await waiting
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
    expect(answer.headers.get('connection')).toBe('close')
    expect((await errorOf(answer)).message).toBe('This instance is shutting down; try again.')
    const overTls = await getOverTls(sockets.httpsPort, '/healthz')
    expect(overTls).toMatchObject({ status: 503, 'retry-after': '5', connection: 'close' })
  })

  test('are one for each worker, on one address', async () => {
    sockets = await openSockets({ http: ANY, https: ANY, workers: 3 })
    const names = ['worker', 'worker-2', 'worker-3'] as const
    const descriptors = names.flatMap((name) => Object.values(sockets.of(name)))
    expect(new Set(descriptors).size).toBe(6)
    expect(descriptors.every((fd) => fd > 2)).toBe(true)
  })

  test('cannot be opened where another one is', async () => {
    sockets = await openSockets({ http: ANY, https: ANY, workers: 1 })
    const taken = { host: '127.0.0.1', port: sockets.httpPort }
    await expect(openSockets({ http: taken, https: ANY, workers: 1 })).rejects.toThrow(
      `127.0.0.1:${sockets.httpPort} is in use`,
    )
  })

  test('are gone when they are closed', async () => {
    sockets = await openSockets({ http: ANY, https: ANY, workers: 1 })
    const { httpPort } = sockets
    await sockets.close()
    const { promise, resolve } = Promise.withResolvers<string>()
    connect(httpPort, '127.0.0.1').once('error', (error) => resolve(error.message))
    expect(await promise).toContain('ECONNREFUSED')
  })
})
