import { expect, test } from 'vitest'
import { ActiveOwners } from '../../../src/worker/limits/active-owners.ts'

test('who has not asked for a while is forgotten, also where nobody counts who is active', () => {
  const owners = new ActiveOwners(1_000)
  for (let owner = 0; owner < 100; owner += 1) owners.seen(`owner ${owner}`, owner * 100, 0)
  expect(owners.size).toBe(10)
})

test('who has a request that waits or is at work is remembered', () => {
  const owners = new ActiveOwners(1_000)
  const works = owners.seen('works', 0, 0)
  works.atWork = 1
  owners.seen('other', 0, 0)
  expect(owners.count(5_000)).toBe(2)
  works.atWork = 0
  const waits = owners.seen('waits', 5_000, 0)
  waits.waiting.push({ cost: 1, calledAt: undefined, wake: () => {} })
  expect(owners.count(10_000)).toBe(1)
  waits.waiting.length = 0
  expect(owners.count(10_000)).toBe(0)
})

test('who comes back was given as much as the others, and no less than before', () => {
  const owners = new ActiveOwners(1_000)
  expect(owners.seen('owner', 0, 7).served).toBe(7)
  expect(owners.seen('owner', 0, 3).served).toBe(7)
  expect(owners.seen('owner', 0, 9).served).toBe(9)
})
