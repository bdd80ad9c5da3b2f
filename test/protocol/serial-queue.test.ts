import { describe, expect, it } from 'vitest'
import { createSerialQueue } from '../../src/protocol/serial-queue.ts'

describe('a serial queue', () => {
  it('begins a step only when the one before has ended, also where that failed', async () => {
    const inTurn = createSerialQueue()
    const first = Promise.withResolvers<string>()
    const begun: number[] = []
    const step = (number: number, result: Promise<string>) =>
      inTurn(() => {
        begun.push(number)
        return result
      })
    const results = Promise.allSettled([step(1, first.promise), step(2, Promise.resolve('second'))])
    await Promise.resolve()
    expect(begun).toEqual([1])
    first.reject(new Error('failed'))
    expect(await results).toEqual([
      { status: 'rejected', reason: new Error('failed') },
      { status: 'fulfilled', value: 'second' },
    ])
    expect(begun).toEqual([1, 2])
  })
})
