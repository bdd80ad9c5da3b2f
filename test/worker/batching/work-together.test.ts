import { describe, expect, it } from 'vitest'
import { batchCalls } from '../../../src/worker/batching/batch-calls.ts'
import { workTogether } from '../../../src/worker/batching/work-together.ts'

const HOST = { now: () => 0, keepAlive: () => {} }
const RULES = { most: 10, patienceMs: 1_000, late: () => new Error('late') }

describe('work done together', () => {
  it('finds each other in the calls it makes', async () => {
    const calls: (readonly number[])[] = []
    const run = async (asks: readonly number[]) => {
      calls.push(asks)
      return asks
    }
    const call = batchCalls(HOST, { ...RULES, run })
    const together = workTogether(HOST, RULES)
    const works = [1, 2, 3].map((ask) => together(async () => void (await call(ask))))
    await Promise.all(works)
    expect(calls).toEqual([[1, 2, 3]])
  })

  it('fails each by itself', async () => {
    const together = workTogether(HOST, RULES)
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
