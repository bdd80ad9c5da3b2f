import { expect, test } from 'vitest'
import { z } from 'zod'
import { clusteredIds } from '../../../src/worker/storage/clustered-ids.ts'

test('ids are UUIDs v4, all different, and thousands in a row begin alike', () => {
  const newId = clusteredIds(() => crypto.randomUUID())
  const ids = Array.from({ length: 10_000 }, () => z.uuidv4().parse(newId()))
  expect(new Set(ids).size).toBe(ids.length)
  const beginnings = ids.map((id) => id.slice(0, 8))
  expect(new Set(beginnings.slice(0, 4_096)).size).toBe(1)
  expect(new Set(beginnings).size).toBe(3)
})
