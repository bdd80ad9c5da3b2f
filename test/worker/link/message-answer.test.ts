import { describe, expect, it } from 'vitest'
import { MessageAnswer } from '../../../src/worker/link/message-answer.ts'

const HEADERS = { 'content-type': 'application/json', 'retry-after': ' 3\t', constructor: 'x' }

const bytesOf = (text: string) => new TextEncoder().encode(text)

function answer(bytes = bytesOf('{"a":1}'), { status = 200, isWhole = true } = {}) {
  return new MessageAnswer({ status, headers: HEADERS }, bytes, isWhole)
}

/** What is read of a body before it ends. */
async function read(body: ReadableStream<Uint8Array> | null): Promise<string> {
  return new Response(body).text()
}

describe('an answer that came as a message', () => {
  it('has status and headers as a response of the same has them', () => {
    for (const status of [200, 299, 300, 404, 500, 599]) {
      const response = new Response('', { status, headers: HEADERS })
      const { headers, ok, status: own } = answer(undefined, { status })
      expect([own, ok]).toEqual([response.status, response.ok])
      for (const name of [...Object.keys(HEADERS), 'content-length', 'valueOf', '__proto__']) {
        expect([headers.get(name), headers.has(name)]).toEqual([
          response.headers.get(name),
          response.headers.has(name),
        ])
      }
    }
  })

  it.each([
    ['text', bytesOf('{"a":"\u00e9\u20ac"}')],
    ['no bytes', bytesOf('')],
    ['bytes that are no UTF-8', new Uint8Array([0x61, 0xff, 0x62, 0xc3])],
    ['a byte order mark', bytesOf('\ufeffa')],
  ])('gives %s as a response does', async (_what, bytes) => {
    expect(await answer(bytes).text()).toBe(await new Response(bytes).text())
    expect(new Uint8Array(await answer(bytes).arrayBuffer())).toEqual(new Uint8Array(bytes))
    expect(await read(answer(bytes).body)).toBe(await new Response(bytes).text())
  })

  it('gives bytes in memory of their own, since its own are part of a frame', async () => {
    const frame = bytesOf('before{"a":1}after')
    const { byteLength } = await answer(frame.subarray(6, 13)).arrayBuffer()
    expect(byteLength).toBe(7)
    const bytes = new Uint8Array(await answer(frame.subarray(6, 13)).arrayBuffer())
    const reader = answer(frame.subarray(6, 13)).body.getReader()
    const piece = (await reader.read()).value
    frame.fill(0)
    expect([bytes, piece]).toEqual([bytesOf('{"a":1}'), bytesOf('{"a":1}')])
  })

  it('that broke off cannot be taken for a whole one in any form', async () => {
    const part = answer(bytesOf('{"a":'), { isWhole: false })
    await expect(part.text()).rejects.toThrow('the answer broke off')
    await expect(part.arrayBuffer()).rejects.toThrow('the answer broke off')
    const reader = part.body.getReader()
    expect((await reader.read()).value).toEqual(bytesOf('{"a":'))
    await expect(reader.read()).rejects.toThrow('the answer broke off')
    const none = answer(bytesOf(''), { isWhole: false })
    await expect(none.body.getReader().read()).rejects.toThrow('the answer broke off')
  })
})
