import { describe, expect, it } from 'vitest'
import { countersFor, EventMemory, giveBackOf } from '../../../src/enclave/egress/event-memory.ts'

const FULL = 'no memory is left for events'

describe('the memory for large events', () => {
  it('is one total for all threads, whose streams give back what they took', () => {
    const taken = countersFor(2)
    const [left, right] = [0, 1].map((place) => new EventMemory(100, taken, place))
    const first = left?.forStream('a')
    const second = right?.forStream('b')
    first?.take(60)
    expect(() => second?.take(41)).toThrow(FULL)
    second?.take(40)
    expect(() => left?.forStream('c').take(1)).toThrow(FULL)
    first?.giveBack()
    right?.forStream('c').take(60)
    expect([...taken]).toEqual([0, 100])
  })

  it('of a thread that ended is given back', () => {
    const taken = countersFor(2)
    new EventMemory(100, taken, 0).forStream('a').take(100)
    const other = new EventMemory(100, taken, 1).forStream('a')
    expect(() => other.take(1)).toThrow(FULL)
    giveBackOf(taken, 0)
    other.take(100)
    expect([...taken]).toEqual([0, 100])
  })

  it('is shared out: what an owner holds in a thread is no more than what is left for all', () => {
    const taken = countersFor(1)
    const memory = new EventMemory(100, taken)
    const streams = [1, 2].map(() => memory.forStream('a'))
    for (const stream of streams) stream.take(20)
    streams[0]?.take(10)
    for (const stream of streams) expect(() => stream.take(11)).toThrow(FULL)
    const other = memory.forStream('b')
    other.take(50)
    other.giveBack()
    streams[1]?.giveBack()
    memory.forStream('a').take(35)
    expect([...taken]).toEqual([65])
  })
})
