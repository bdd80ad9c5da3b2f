import { describe, expect, it, vi } from 'vitest'
import { createSharedRuns } from '../../../src/worker/storage/shared-runs.ts'

interface Run {
  readonly items: readonly string[]
  readonly end: () => void
}

/** Runs that end when the test says so. */
function startRuns(
  rules: { maxRuns?: number; maxItems?: number; maxSize?: number; now?: () => number } = {},
) {
  const runs: Run[] = []
  const submit = createSharedRuns<string, string>({
    run: (items) => {
      const { promise, resolve } = Promise.withResolvers<readonly string[]>()
      runs.push({ items, end: () => resolve(items.map((item) => `answer to ${item}`)) })
      return promise
    },
    maxRuns: 1,
    maxItems: 10,
    maxSize: 1_000,
    sizeOf: (item) => item.length,
    deadlineMs: 5_000,
    now: Date.now,
    timeoutAnswer: 'too late',
    ...rules,
  })
  const end = async (index: number) => {
    runs[index]?.end()
    await vi.waitFor(() => Promise.resolve())
  }
  return { submit, runs, end, itemsOf: () => runs.map(({ items }) => items) }
}

describe('shared runs', () => {
  it('begin at once with what comes while fewer than the most are under way, and are shared by what waits', async () => {
    const { submit, end, itemsOf } = startRuns({ maxRuns: 2 })
    const answers = [submit(['a']), submit(['b', 'c']), submit(['d']), submit(['e', 'f'])]
    expect(itemsOf()).toEqual([['a'], ['b', 'c']])
    await end(1)
    expect(await answers[1]).toEqual(['answer to b', 'answer to c'])
    await end(0)
    expect(itemsOf()[2]).toEqual(['d', 'e', 'f'])
    await end(2)
    expect(await Promise.all(answers)).toEqual([
      ['answer to a'],
      ['answer to b', 'answer to c'],
      ['answer to d'],
      ['answer to e', 'answer to f'],
    ])
  })

  it('have no more items and characters than one may have, but always those of one call', async () => {
    const { submit, end, itemsOf } = startRuns({ maxItems: 3, maxSize: 10 })
    void submit(['first'])
    void submit(['a', 'b'])
    void submit(['c', 'd'])
    void submit(['x'.repeat(20)])
    void submit(['e'])
    for (let run = 0; run < 4; run += 1) await end(run)
    expect(itemsOf()).toEqual([['first'], ['a', 'b'], ['c', 'd'], ['x'.repeat(20)], ['e']])
  })

  it('answer what waited too long as timed out, and never run it', async () => {
    vi.useFakeTimers()
    try {
      const { submit, end, itemsOf } = startRuns()
      const first = submit(['a'])
      const second = submit(['b'])
      await vi.advanceTimersByTimeAsync(5_000)
      expect(await second).toEqual(['too late'])
      await end(0)
      expect(await first).toEqual(['answer to a'])
      expect(itemsOf()).toEqual([['a']])
    } finally {
      vi.useRealTimers()
    }
  })

  it('answer what waited and then ran for too long in all as timed out', async () => {
    vi.useFakeTimers()
    try {
      const { submit, end, itemsOf } = startRuns()
      void submit(['a'])
      const second = submit(['b'])
      await vi.advanceTimersByTimeAsync(4_000)
      await end(0)
      expect(itemsOf()).toEqual([['a'], ['b']])
      await vi.advanceTimersByTimeAsync(1_000)
      expect(await second).toEqual(['too late'])
    } finally {
      vi.useRealTimers()
    }
  })

  it('still give an answer that has come while the program did not run', async () => {
    vi.useFakeTimers()
    try {
      let pausedMs = 0
      const { submit, end } = startRuns({ now: () => Date.now() + pausedMs })
      void submit(['a'])
      const second = submit(['b'])
      await vi.advanceTimersByTimeAsync(4_000)
      await end(0)
      pausedMs = 60_000
      await vi.advanceTimersByTimeAsync(1_000)
      await end(1)
      expect(await second).toEqual(['answer to b'])
    } finally {
      vi.useRealTimers()
    }
  })

  it('answer nothing with nothing', async () => {
    const { submit, itemsOf } = startRuns()
    expect(await submit([])).toEqual([])
    expect(itemsOf()).toEqual([])
  })
})
