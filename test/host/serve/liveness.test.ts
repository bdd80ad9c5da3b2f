import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { watchLiveness } from '../../../src/host/serve/liveness.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function watch() {
  const probe = vi.fn<() => Promise<string>>(async () => 'ok')
  const kill = vi.fn<() => void>()
  const told: string[] = []
  const here = { is: true }
  const end = watchLiveness(() => (here.is ? [{ name: 'worker', probe, kill }] : []), {
    log: (text) => told.push(text.trim()),
    everyMs: 1_000,
    misses: 3,
  })
  return { probe, kill, told, end, here }
}

describe('the watch over a process', () => {
  test('says nothing while it is healthy', async () => {
    const { told, kill, probe } = watch()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(probe).toHaveBeenCalledTimes(10)
    expect([told, kill.mock.calls]).toEqual([[], []])
  })

  test('kills it after the given number of questions without an answer', async () => {
    const { probe, told, kill } = watch()
    probe.mockRejectedValue(new Error('no answer'))
    await vi.advanceTimersByTimeAsync(2_000)
    expect(kill).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(kill).toHaveBeenCalledTimes(1)
    expect(told).toEqual(['worker   gives no sign of life', 'worker   is frozen: killed'])
  })

  test('tells when its health changes, and never kills one that answers', async () => {
    const { probe, told, kill } = watch()
    probe.mockResolvedValue('is not healthy: status 503')
    await vi.advanceTimersByTimeAsync(9_000)
    probe.mockResolvedValue('ok')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(told).toEqual(['worker   is not healthy: status 503', 'worker   healthy again'])
    expect(kill).not.toHaveBeenCalled()
  })

  test('counts nothing against the next process of a name', async () => {
    const { probe, kill, here } = watch()
    probe.mockRejectedValue(new Error('no answer'))
    await vi.advanceTimersByTimeAsync(2_000)
    here.is = false
    await vi.advanceTimersByTimeAsync(1_000)
    here.is = true
    await vi.advanceTimersByTimeAsync(2_000)
    expect([probe.mock.calls.length, kill.mock.calls]).toEqual([4, []])
  })

  test('ends', async () => {
    const { probe, end } = watch()
    end()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(probe).not.toHaveBeenCalled()
  })
})
