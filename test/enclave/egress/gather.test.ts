import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  countersFor,
  EventMemory,
  type StreamMemory,
} from '../../../src/enclave/egress/event-memory.ts'
import { gather, type GatherLimits } from '../../../src/enclave/egress/gather.ts'
import { FakeAnswer } from './fake-answer.ts'
import { ownTimers } from '../../support/own-timers.ts'

const LIMITS: GatherLimits = { bytes: 8, ms: 50 }

function gathered(limits?: GatherLimits, totalBytes = 100) {
  const answer = new FakeAnswer()
  const taken = countersFor(1)
  const memory = new EventMemory(totalBytes, taken).forAnswer('nova')
  const told: string[] = []
  let givenOn: StreamMemory | undefined
  gather(
    answer,
    {
      whole: (body) => void told.push(`whole ${body.toString()}`),
      brokenOff: (part) => void told.push(`broken ${part.toString()}`),
      tooMuch: ({ parts, memory: held }) => {
        told.push(`too much ${parts.join('|')}`)
        givenOn = held
      },
    },
    memory,
    limits,
  )
  const give = (...parts: readonly string[]) => answer.give(...parts)
  const finish = () => answer.finish()
  return { answer, told, give, finish, taken: () => taken[0], passOn: () => givenOn?.giveBack() }
}

describe('an answer that is gathered', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('is told whole, once, when it has ended', () => {
    const timers = ownTimers()
    const { told, give, finish } = gathered(LIMITS)
    give('ab', 'cdef', 'gh')
    expect(told).toEqual([])
    finish()
    vi.advanceTimersByTime(1_000)
    expect(told).toEqual(['whole abcdefgh'])
    expect(timers.left()).toBe(0)
  })

  it('is told broken where it was closed before its end', () => {
    const { answer, told, give } = gathered(LIMITS)
    give('ab')
    answer.emit('close')
    vi.advanceTimersByTime(1_000)
    expect(told).toEqual(['broken ab'])
  })

  it('is given up, with all that came, when it is larger than may be gathered', () => {
    const { told, give, finish } = gathered(LIMITS)
    give('abcd', 'efgh')
    expect(told).toEqual([])
    give('i', 'j')
    finish()
    vi.advanceTimersByTime(1_000)
    expect(told).toEqual(['too much abcd|efgh|i'])
  })

  it('is given up when it has not ended in time', () => {
    const { told, give, finish } = gathered(LIMITS)
    give('a')
    vi.advanceTimersByTime(49)
    expect(told).toEqual([])
    vi.advanceTimersByTime(1)
    give('b')
    finish()
    expect(told).toEqual(['too much a'])
  })

  it('may take any time, and is as large as it said, without limits', () => {
    const { told, give, finish } = gathered()
    give('abcdefghij')
    vi.advanceTimersByTime(1_000_000)
    give('k')
    finish()
    expect(told).toEqual(['whole abcdefghijk'])
  })

  it('takes memory from its first byte until it is told', () => {
    const whole = gathered(LIMITS)
    whole.give('ab', 'cde')
    expect(whole.taken()).toBe(5)
    whole.finish()
    expect(whole.taken()).toBe(0)
    const broken = gathered(LIMITS)
    broken.give('ab')
    broken.answer.emit('close')
    expect([broken.told, broken.taken()]).toEqual([['broken ab'], 0])
  })

  it('keeps the memory of an answer that is given up until that is passed on', () => {
    const { told, give, finish, taken, passOn } = gathered(LIMITS)
    give('abcdefghi')
    finish()
    expect([told, taken()]).toEqual([['too much abcdefghi'], 9])
    passOn()
    expect(taken()).toBe(0)
  })

  it('is given up, with all that came, where no memory is left for it', () => {
    const { told, give, finish, taken, passOn } = gathered(undefined, 5)
    give('abc', 'def', 'gh')
    finish()
    expect([told, taken()]).toEqual([['too much abc|def'], 3])
    passOn()
    expect(taken()).toBe(0)
  })
})
