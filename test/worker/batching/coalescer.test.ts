import { describe, expect, it } from 'vitest'
import { createBatcher } from '../../../src/worker/batching/batcher.ts'
import { createCoalescer } from '../../../src/worker/batching/coalescer.ts'

const HOST = { now: () => 0, keepAlive: () => {} }
const RULES = { maxItems: 10, joinTimeoutMs: 1_000, timeoutError: () => new Error('late') }

describe('work done together', () => {
  it('finds each other in the calls it makes', async () => {
    const calls: (readonly number[])[] = []
    const run = async (requests: readonly number[]) => {
      calls.push(requests)
      return requests
    }
    const call = createBatcher(HOST, { ...RULES, run })
    const together = createCoalescer(HOST, RULES)
    const works = [1, 2, 3].map((ask) => together(async () => void (await call(ask))))
    await Promise.all(works)
    expect(calls).toEqual([[1, 2, 3]])
  })

  it('fails each by itself', async () => {
    const together = createCoalescer(HOST, RULES)
    const failure = new Error('mine')
    const ends = await Promise.allSettled([
      together(async () => {}),
      together(() => Promise.reject(failure)),
      together(async () => {}),
    ])
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(ends[1]).toMatchObject({ reason: failure })
  })
})
