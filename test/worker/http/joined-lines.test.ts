import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { joinedLines } from '../../../src/worker/http/joined-lines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

function opened(keepAlive: (work: Promise<unknown>) => void = () => {}) {
  const written: string[] = []
  const log = joinedLines((text) => written.push(text), { now: () => Date.now(), pause, keepAlive })
  return { written, log }
}

describe('lines of a moment', () => {
  it('are written in one piece, in their order', async () => {
    const { written, log } = opened()
    log('one')
    log('two')
    expect(written).toEqual([])
    await vi.advanceTimersByTimeAsync(10)
    expect(written).toEqual(['one\ntwo'])
    log('three')
    await vi.advanceTimersByTimeAsync(10)
    expect(written).toEqual(['one\ntwo', 'three'])
  })

  it('keep the request of the first one alive until they are written', async () => {
    const kept: Promise<unknown>[] = []
    const { written, log } = opened((work) => kept.push(work))
    log('one')
    log('two')
    expect(kept).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(10)
    await kept[0]
    expect(written).toEqual(['one\ntwo'])
  })

  it('are written by the next line where the runtime has ended the request that was to do it', () => {
    const { written, log } = opened()
    log('one')
    // The timer belongs to that request and never fires.
    vi.clearAllTimers()
    vi.setSystemTime(Date.now() + 1_000)
    log('two')
    expect(written).toEqual(['one\ntwo'])
  })

  it('do not wait once there are many', () => {
    const { written, log } = opened()
    for (let count = 0; count < 256; count += 1) log(`${count}`)
    expect(written.join('\n').split('\n')).toHaveLength(256)
  })
})
