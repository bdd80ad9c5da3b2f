import { describe, expect, it } from 'vitest'
import { countersFor, EventMemory } from '../../../src/enclave/egress/event-memory.ts'
import { HeldAnswer } from '../../../src/enclave/egress/held-answer.ts'
import { ProviderAnswer } from '../../../src/enclave/egress/provider-answer.ts'

/** An answer of which that much was reported before it was held; what its connection is asked; what is reported of it. */
function set(...begun: string[]) {
  const asked: string[] = []
  const controller = {
    aborted: false,
    paused: false,
    reason: null,
    abort: () => void asked.push('abort'),
    pause: () => void asked.push('pause'),
    resume: () => void asked.push('resume'),
  }
  const answer = new ProviderAnswer(200, { 'x-a': 'b' }, controller)
  const taken = countersFor(1)
  const memory = new EventMemory(100, taken).forAnswer('nova')
  const parts = begun.map((text) => Buffer.from(text))
  for (const { length } of parts) memory.take(length)
  const held = new HeldAnswer(answer, { parts, memory })
  const told: string[] = []
  const give = (text: string) => answer.give(Buffer.from(text))
  /** With a reader that is paused by those parts. */
  const read = (...pausing: string[]) => {
    held.on('data', (bytes) => {
      told.push(String(bytes))
      if (pausing.includes(String(bytes))) held.pause()
    })
    held.once('end', () => void told.push('end'))
    held.once('close', () => void told.push('close'))
  }
  return { answer, held, asked, told, give, read, taken: () => taken[0] }
}

describe('an answer that is held', () => {
  it('is not read, and keeps what comes all the same until it is released', () => {
    const { answer, held, asked, told, give, read } = set('a')
    give('b')
    read()
    give('c')
    answer.finish()
    expect([asked, told, held.readableEnded]).toEqual([['pause'], [], false])
    held.release()
    expect([told, held.readableEnded]).toEqual([['a', 'b', 'c', 'end', 'close'], true])
    expect([held.statusCode, held.headers]).toEqual([200, { 'x-a': 'b' }])
  })

  it('is read on once it is released, and reports everything as it comes', () => {
    const { held, asked, told, give, read } = set('a')
    read()
    held.release()
    expect([asked, told]).toEqual([['pause', 'resume'], ['a']])
    give('b')
    expect(told).toEqual(['a', 'b'])
  })

  it('rests while its reader asks for that, from the first part that was kept on', () => {
    const { answer, held, asked, told, give, read } = set('a', 'b')
    read('a')
    held.release()
    expect([asked, told]).toEqual([['pause', 'pause'], ['a']])
    give('c')
    answer.finish()
    expect(told).toEqual(['a'])
    held.resume()
    expect(told).toEqual(['a', 'b', 'c', 'end', 'close'])
  })

  it('rests again at each part that its reader cannot take', () => {
    const { held, asked, told, read } = set('a', 'b', 'c')
    read('a', 'b')
    held.release()
    expect(told).toEqual(['a'])
    held.resume()
    expect(told).toEqual(['a', 'b'])
    held.resume()
    expect([told, asked.at(-1)]).toEqual([['a', 'b', 'c'], 'resume'])
  })

  it('rests when its reader asked for that before it was released', () => {
    const { held, told, asked, read } = set('a')
    read()
    held.pause()
    held.release()
    expect([told, asked.includes('resume')]).toEqual([[], false])
    held.resume()
    expect(told).toEqual(['a'])
  })

  it('is not read before it is released, though its reader asks for that', () => {
    const { held, told, asked, read } = set('a')
    read()
    held.resume()
    expect([told, asked]).toEqual([[], ['pause']])
  })

  it('takes memory for what was reported before until that is reported again, or it is destroyed', () => {
    const released = set('abc', 'de')
    released.read('abc')
    released.held.release()
    expect(released.taken()).toBe(5)
    released.held.resume()
    expect(released.taken()).toBe(0)
    const destroyed = set('abc')
    expect(destroyed.taken()).toBe(3)
    destroyed.held.destroy()
    expect(destroyed.taken()).toBe(0)
  })

  it('is told to its reader as closed when it is destroyed, without what was kept', async () => {
    const { answer, held, told, asked, read } = set('a', 'b')
    read('a')
    held.release()
    held.destroy()
    await Promise.resolve()
    expect(asked.at(-1)).toBe('abort')
    answer.close()
    expect(told).toEqual(['a', 'close'])
  })
})
