import { describe, expect, test } from 'vitest'
import { UsageTally } from '../../../src/worker/stream/usage-tally.ts'

function tally(...usages: readonly unknown[]): UsageTally {
  const counts = new UsageTally()
  for (const usage of usages) counts.take(usage)
  return counts
}

const THREE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }

describe('every dialect', () => {
  test.each([
    ['the three plain counts', THREE, [10, 4, 0, 0]],
    [
      'cached tokens in details',
      { ...THREE, prompt_tokens_details: { cached_tokens: 6 } },
      [10, 4, 6, 0],
    ],
    ['null details', { ...THREE, prompt_tokens_details: null }, [10, 4, 0, 0]],
    [
      'cache hits and misses',
      { ...THREE, prompt_cache_hit_tokens: 6, prompt_cache_miss_tokens: 4 },
      [10, 4, 6, 0],
    ],
    ['cached tokens at top level', { ...THREE, cached_tokens: 3 }, [10, 4, 3, 0]],
    [
      'cache writes',
      { ...THREE, prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 5 } },
      [10, 4, 2, 5],
    ],
    [
      'reads and writes at top level',
      { ...THREE, cache_read_input_tokens: 2, cache_creation_input_tokens: 5 },
      [10, 4, 2, 5],
    ],
    [
      'more cached than sent',
      { ...THREE, cached_tokens: 99, cache_write_tokens: 99 },
      [10, 4, 10, 0],
    ],
    [
      'reasoning tokens, which completion tokens contain',
      { ...THREE, reasoning_tokens: 3 },
      [10, 4, 0, 0],
    ],
    ['input and output tokens', { input_tokens: 10, output_tokens: 4 }, [10, 4, 0, 0]],
    [
      'a total in place of a completion count',
      { prompt_tokens: 10, total_tokens: 14 },
      [10, 4, 0, 0],
    ],
    [
      'a total in place of a prompt count',
      { completion_tokens: 4, total_tokens: 14 },
      [10, 4, 0, 0],
    ],
    ['a prompt count alone', { prompt_tokens: 10 }, [10, 0, 0, 0]],
    [
      'counts that are none',
      { ...THREE, cached_tokens: -1, cache_write_tokens: 1.5 },
      [10, 4, 0, 0],
    ],
  ])('%s', (_, usage, [promptTokens, completionTokens, cachedTokens, cacheWriteTokens]) => {
    expect(tally(usage).tokens).toEqual({
      promptTokens,
      completionTokens,
      cachedTokens,
      cacheWriteTokens,
    })
  })

  test.each([
    [null],
    [undefined],
    [[]],
    ['5'],
    [{}],
    [{ prompt_tokens: 0, completion_tokens: 0 }],
    [{ total_tokens: 14 }],
    [{ prompt_tokens: 0, total_tokens: 14 }],
  ])('%j counts nothing', (usage) => {
    const counts = new UsageTally()
    expect(counts.take(usage)).toBe(false)
    expect(counts.tokens).toBeUndefined()
    expect(counts.report()).toBeUndefined()
  })

  test.each([['10'], [1e300], [Number.NaN], [2 ** 53], [true]])('%s is no count', (count) => {
    expect(tally({ prompt_tokens: count, completion_tokens: 1 }).tokens?.promptTokens).toBe(0)
  })
})

test('counts are merged by maximum, each by itself', () => {
  const counts = tally(
    { prompt_tokens: 10, completion_tokens: 1, cached_tokens: 8 },
    { prompt_tokens: 10, completion_tokens: 9 },
    { prompt_tokens: 4, completion_tokens: 3, cached_tokens: 2 },
  )
  expect(counts.tokens).toMatchObject({ promptTokens: 10, completionTokens: 9, cachedTokens: 8 })
})

describe('text that no count covers', () => {
  test('counts at least as many bytes as are estimated to be a token for each delta with text', () => {
    const counts = new UsageTally()
    for (const digit of '0123456789') counts.addText(digit.length)
    for (let empty = 0; empty < 10; empty++) counts.addText(0)
    expect(counts.uncountedTextBytes).toBe(3 * 10)
    counts.addText(100)
    expect(counts.uncountedTextBytes).toBe(110)
  })

  test('is covered by a count, and in part by one that is partial', () => {
    const counts = new UsageTally()
    for (let delta = 0; delta < 10; delta++) counts.addText(1)
    counts.take({ completion_tokens: 4 }, true)
    expect(counts.uncountedTextBytes).toBe(3 * 6)
    counts.take({ completion_tokens: 4 })
    expect(counts.uncountedTextBytes).toBe(0)
    counts.addText(1)
    expect(counts.uncountedTextBytes).toBe(3)
  })

  test('is the same in a tally that continues from these counts', () => {
    const counts = new UsageTally()
    for (let delta = 0; delta < 10; delta++) counts.addText(1)
    expect(UsageTally.of(counts.counts).uncountedTextBytes).toBe(3 * 10)
  })
})

describe('a total alone', () => {
  const total = (...usages: readonly unknown[]) => tally(...usages).produced.totalTokens

  test('is kept beside the counts, the highest that came', () => {
    expect(total({ total_tokens: 14 })).toBe(14)
    expect(total({ prompt_tokens: 0, total_tokens: 14 })).toBe(14)
    expect(total({ total_tokens: 14 }, { total_tokens: 9 })).toBe(14)
    expect(total({ prompt_tokens: 10 }, { total_tokens: 14 })).toBe(14)
  })

  test.each([
    [THREE],
    [{ prompt_tokens: 10, total_tokens: 14 }],
    [{ total_tokens: 0 }],
    [{ total_tokens: '14' }],
    [{}],
  ])('is none in %j', (usage) => {
    expect(total(usage)).toBeUndefined()
  })

  test('is none where it may be of one choice among several, or text came after it', () => {
    const counts = new UsageTally()
    counts.take({ total_tokens: 14 }, true)
    expect(counts.produced.totalTokens).toBeUndefined()
    counts.take({ total_tokens: 14 })
    counts.addText(0)
    expect(counts.produced.totalTokens).toBe(14)
    counts.addText(1)
    expect(counts.produced.totalTokens).toBeUndefined()
  })

  test('is the same in a tally that continues from these counts', () => {
    const counts = tally({ total_tokens: 14 })
    expect(UsageTally.of(counts.counts).produced).toEqual(counts.produced)
  })
})

test('details are reported only where the provider gave them, zeros too', () => {
  const none = { cachedTokens: undefined, cacheWriteTokens: undefined, reasoningTokens: undefined }
  const { promptTokens, completionTokens } = tally(THREE).tokens ?? {}
  const counts = { promptTokens, completionTokens }
  expect(tally(THREE).report()).toEqual({ ...counts, ...none })
  const cached = tally({ ...THREE, prompt_tokens_details: { cached_tokens: 0 } })
  expect(cached.report()).toEqual({ ...counts, ...none, cachedTokens: 0 })
})
