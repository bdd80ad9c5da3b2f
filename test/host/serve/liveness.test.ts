import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { watchLiveness } from '../../../src/host/serve/liveness.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function watch() {
  const ask = vi.fn<() => Promise<string>>(async () => 'ok')
  const kill = vi.fn<() => void>()
  const told: string[] = []
  const end = watchLiveness(() => [{ name: 'worker', ask, kill }], {
    tell: (text) => told.push(text.trim()),
    everyMs: 1_000,
    misses: 3,
  })
  return { ask, kill, told, end }
}

describe('the watch over a process', () => {
  test('says nothing while it is healthy', async () => {
    const { told, kill, ask } = watch()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(ask).toHaveBeenCalledTimes(10)
    expect([told, kill.mock.calls]).toEqual([[], []])
  })

  test('kills it after the given number of questions without an answer', async () => {
    const { ask, told, kill } = watch()
    ask.mockRejectedValue(new Error('no answer'))
    await vi.advanceTimersByTimeAsync(2_000)
    expect(kill).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(kill).toHaveBeenCalledTimes(1)
    expect(told).toEqual(['worker   gives no sign of life', 'worker   is frozen: killed'])
  })

  test('tells when its health changes, and never kills one that answers', async () => {
    const { ask, told, kill } = watch()
    ask.mockResolvedValue('is not healthy: status 503')
    await vi.advanceTimersByTimeAsync(9_000)
    ask.mockResolvedValue('ok')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(told).toEqual(['worker   is not healthy: status 503', 'worker   healthy again'])
    expect(kill).not.toHaveBeenCalled()
  })

  test('ends', async () => {
    const { ask, end } = watch()
    end()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(ask).not.toHaveBeenCalled()
  })
})
