import { describe, expect, it } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { AnsweredChunks } from '../../../src/worker/completion/answered-chunks.ts'

/** A body of these chunks, which then ends or breaks. */
function bodyOf(texts: readonly string[], error?: Error): ReadableStream<Uint8Array> {
  const left = [...texts]
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const text = left.shift()
    if (text !== undefined) controller.enqueue(utf8(text))
    else if (error === undefined) controller.close()
    else controller.error(error)
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

/** All that a client gets of these chunks, the first of which was waited for. */
async function passed(source: AnsweredChunks): Promise<string> {
  expect(await source.begin()).toBe(true)
  let disconnects = 0
  const client = await source.pumped(() => (disconnects += 1))
  const text = new Response(client.readable).text()
  await source.passTo(client)
  await client.finish(utf8('last;'))
  expect(disconnects).toBe(0)
  return text
}

describe('chunks in the body of an answer', () => {
  it('all come to the client, the first one that was waited for too', async () => {
    expect(await passed(new AnsweredChunks(bodyOf(['one;', 'two;'])))).toBe('one;two;last;')
  })

  it('have not begun where the body is empty, and their record is to be asked for', async () => {
    const source = new AnsweredChunks(bodyOf([]))
    expect(await source.begin()).toBe(false)
    expect(await source.record()).toBeUndefined()
  })

  it('fail where the body breaks, before the first one and after it', async () => {
    const lost = new Error('network connection lost')
    await expect(new AnsweredChunks(bodyOf([], lost)).begin()).rejects.toBe(lost)
    const source = new AnsweredChunks(bodyOf(['one;'], lost))
    await source.begin()
    const client = await source.pumped(() => {})
    const text = new Response(client.readable).text()
    await expect(source.passTo(client)).rejects.toBe(lost)
    await client.finish(utf8('error;'))
    expect(await text).toBe('one;\n\nerror;')
  })
})
