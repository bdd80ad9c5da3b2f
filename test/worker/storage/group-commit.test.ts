import { describe, expect, it } from 'vitest'
import { createGroup } from '../../../src/worker/storage/group-commit.ts'

describe('a commit group', () => {
  it('runs what arrives before the flush as one, and what arrives later as the next', async () => {
    const groups: (readonly number[])[] = []
    const flushes: (() => void)[] = []
    const ask = createGroup<number, string>(
      (asks) => {
        groups.push(asks)
        return asks.map((number) => `answer ${number}`)
      },
      (flush) => flushes.push(flush),
    )
    const first = [ask(1), ask(2)]
    flushes.shift()?.()
    const second = ask(3)
    flushes.shift()?.()
    expect(await Promise.all([...first, second])).toEqual(['answer 1', 'answer 2', 'answer 3'])
    expect(groups).toEqual([[1, 2], [3]])
    expect(flushes).toEqual([])
  })

  it('fails every call of a group that throws, and serves the next', async () => {
    let broken = true
    const ask = createGroup<number, number>(
      (asks) => {
        if (broken) throw new Error('broken')
        return asks
      },
      (flush) => queueMicrotask(flush),
    )
    const results = await Promise.allSettled([ask(1), ask(2)])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    broken = false
    expect(await ask(3)).toBe(3)
  })
})
