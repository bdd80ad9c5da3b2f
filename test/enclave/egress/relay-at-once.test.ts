import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  countersFor,
  EventMemory,
  type TakenByThread,
} from '../../../src/enclave/egress/event-memory.ts'
import { relayAtOnce } from '../../../src/enclave/egress/relay-at-once.ts'
import { listen } from '../../support/listen.ts'
import { FakeAnswer } from './fake-answer.ts'

const server = createServer()

let url: string
let taken: TakenByThread

beforeEach(async () => {
  url = `http://127.0.0.1:${await listen(server)}`
  taken = countersFor(1)
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** A call whose answer of so many bytes is relayed as far as there is memory. */
async function relayed(length: number, totalBytes: number) {
  const asked = Promise.withResolvers<ServerResponse>()
  server.once('request', (_request, response) => asked.resolve(response))
  const received = fetch(url)
  const response = await asked.promise
  response.writeHead(200, { 'content-length': length })
  const answer = new FakeAnswer()
  relayAtOnce(answer, response, new EventMemory(totalBytes, taken).forAnswer('nova'))
  return { answer, response, received }
}

describe('a small answer over HTTP', () => {
  it('is sent when it is whole, and takes memory until then', async () => {
    const { answer, response, received } = await relayed(5, 100)
    answer.give('ab', 'c')
    expect([response.writableLength, taken[0]]).toEqual([0, 3])
    answer.give('de')
    answer.finish()
    expect(taken[0]).toBe(0)
    expect(await (await received).text()).toBe('abcde')
  })

  it('is passed on as it comes where no memory is left for it, and then takes none', async () => {
    const { answer, received } = await relayed(6, 3)
    answer.give('ab', 'cd')
    expect(taken[0]).toBe(0)
    const reader = (await received).body?.getReader()
    const read = async () => new TextDecoder().decode((await reader?.read())?.value)
    let begun = ''
    while (begun.length < 4) begun += await read()
    expect(begun).toBe('abcd')
    answer.give('ef')
    answer.finish()
    expect(await read()).toBe('ef')
    expect((await reader?.read())?.done).toBe(true)
  })

  it('is not read on while what came of it is not taken', async () => {
    const { answer, response, received } = await relayed(1_024 * 1_024, 3)
    const text = received.then((got) => got.text())
    response.cork()
    answer.give('x'.repeat(1_024 * 1_024))
    expect(answer.asked).toEqual(['pause'])
    const drained = once(response, 'drain')
    response.uncork()
    await drained
    expect(answer.asked).toEqual(['pause', 'resume'])
    answer.finish()
    expect((await text).length).toBe(1_024 * 1_024)
  })

  it.each([100, 3])(
    'that is cut off is broken for the worker, after what came of it, with memory for %i bytes',
    async (totalBytes) => {
      const { answer, received } = await relayed(6, totalBytes)
      answer.give('ab', 'cd')
      answer.emit('close')
      expect(taken[0]).toBe(0)
      await expect((await received).text()).rejects.toThrow('terminated')
    },
  )

  it('is given up when the worker has left', async () => {
    const { answer, response, received } = await relayed(6, 100)
    answer.give('ab')
    const closed = once(response, 'close')
    response.destroy()
    await closed
    expect(answer.asked).toEqual(['destroy'])
    answer.emit('close')
    expect(taken[0]).toBe(0)
    await expect(received).rejects.toThrow('fetch failed')
  })
})
