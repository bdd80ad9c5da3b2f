import { describe, expect, it } from 'vitest'
import { countersFor, EventMemory, giveBackOf } from '../../../src/enclave/egress/event-memory.ts'

const FULL = 'no memory is left for events'

describe('the memory for large events', () => {
  it('is one total for all threads, whose streams give back what they took', () => {
    const taken = countersFor(2)
    const [left, right] = [0, 1].map((place) => new EventMemory(100, taken, place).forStream())
    left?.take(60)
    expect(() => right?.take(41)).toThrow(FULL)
    right?.take(40)
    expect(() => left?.take(1)).toThrow(FULL)
    left?.giveBack()
    right?.take(60)
    expect([...taken]).toEqual([0, 100])
  })

  it('of a thread that ended is given back', () => {
    const taken = countersFor(2)
    new EventMemory(100, taken, 0).forStream().take(100)
    const other = new EventMemory(100, taken, 1).forStream()
    expect(() => other.take(1)).toThrow(FULL)
    giveBackOf(taken, 0)
    other.take(100)
    expect([...taken]).toEqual([0, 100])
  })
})
