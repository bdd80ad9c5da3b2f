import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AnswerBody } from '../../../src/enclave/egress/answer-body.ts'
import { gather, type GatherLimits } from '../../../src/enclave/egress/gather.ts'

class FakeAnswer
  extends EventEmitter<{ data: [Buffer]; end: []; close: [] }>
  implements AnswerBody
{
  readableEnded = false
  pause() {}
  resume() {}
  destroy() {}
}

const LIMITS: GatherLimits = { bytes: 8, ms: 50 }

function gathered(limits?: GatherLimits) {
  const answer = new FakeAnswer()
  const told: string[] = []
  gather(
    answer,
    {
      whole: (body) => void told.push(`whole ${body.toString()}`),
      brokenOff: (part) => void told.push(`broken ${part.toString()}`),
      tooMuch: (parts) => void told.push(`too much ${parts.join('|')}`),
    },
    limits,
  )
  const give = (...parts: readonly string[]) => {
    for (const part of parts) answer.emit('data', Buffer.from(part))
  }
  const finish = () => {
    answer.readableEnded = true
    answer.emit('end')
    answer.emit('close')
  }
  return { answer, told, give, finish }
}

describe('an answer that is gathered', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('is told whole, once, when it has ended', () => {
    const { told, give, finish } = gathered(LIMITS)
    give('ab', 'cdef', 'gh')
    expect(told).toEqual([])
    finish()
    vi.advanceTimersByTime(1_000)
    expect(told).toEqual(['whole abcdefgh'])
    expect(vi.getTimerCount()).toBe(0)
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
})
