import { describe, expect, test } from 'vitest'
import { Turns } from '../../../src/worker/link/turns.ts'

const RULES = { most: 2, longestMs: 1_000, patienceMs: 500 }

/** Turns whose time goes by only while somebody waits. */
function turnsWithClock() {
  const clock = { now: 0 }
  const pauses: number[] = []
  const pause = async (ms: number) => {
    pauses.push(ms)
    await Promise.resolve()
    clock.now += ms
  }
  return { turns: new Turns(RULES, () => clock.now, pause), clock, pauses }
}

describe('turns', () => {
  test('are there at once as long as there is room, and again when one has ended', async () => {
    const { turns, pauses } = turnsWithClock()
    const first = await turns.take()
    await turns.take()
    expect(pauses).toEqual([])
    const third = turns.take()
    first?.end()
    first?.end()
    expect(await third).toBeDefined()
    expect(pauses).toEqual([5])
  })

  test('are refused to one who has waited for as long as anybody waits', async () => {
    const { turns, clock } = turnsWithClock()
    await turns.take()
    await turns.take()
    expect(await turns.take()).toBeUndefined()
    expect(clock.now).toBe(500)
  })

  test('that are never ended are over in the end', async () => {
    const { turns, clock } = turnsWithClock()
    await turns.take()
    await turns.take()
    clock.now = 1_001
    expect(await turns.take()).toBeDefined()
  })

  test('are looked for less often by many than by few', async () => {
    const { turns, pauses } = turnsWithClock()
    await turns.take()
    await turns.take()
    await Promise.all(Array.from({ length: 20 }, () => turns.take()))
    expect(Math.max(...pauses)).toBe(50)
  })
})
