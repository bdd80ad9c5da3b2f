import { expect, test } from 'vitest'
import { z } from 'zod'
import { clusteredIds } from '../../../src/worker/storage/clustered-ids.ts'

test('ids are UUIDs v4, all different, and those of one moment begin alike on every worker', () => {
  const now = () => 1_763_884_800_123
  const workers = [1, 2].map(() => clusteredIds(() => crypto.randomUUID(), now))
  const ids = workers.flatMap((newId) =>
    Array.from({ length: 5_000 }, () => z.uuidv4().parse(newId())),
  )
  expect(new Set(ids).size).toBe(ids.length)
  expect(new Set(ids.map((id) => id.slice(0, 13)))).toEqual(new Set(['019aafba-187b']))
})

test('ids are in the order of the times at which they were made', () => {
  let time = 0
  const newId = clusteredIds(
    () => crypto.randomUUID(),
    () => time,
  )
  const ids = [0, 1, 15, 16, 255, 1_763_884_800_123, 2 ** 48 - 1].map((at) => {
    time = at
    return z.uuidv4().parse(newId())
  })
  expect(ids.toSorted()).toEqual(ids)
})
