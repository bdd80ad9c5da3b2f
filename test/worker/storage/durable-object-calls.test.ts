import { expect, test } from 'vitest'
import {
  durableObjectStorage,
  type StoreTarget,
} from '../../../src/worker/storage/durable-object-storage.ts'
import type { ObjectNamespace } from '../../../src/worker/storage/object-call.ts'
import type { PackedBatches } from '../../../src/worker/storage/packed-batches.ts'

/** Calls between objects carry 32 MiB, and fail as a whole above that. */
const MAX_CALL_BYTES = 32 * 1024 * 1024

/** A storage object that only notes the calls. */
function notedCalls() {
  const calls: PackedBatches[] = []
  const target: StoreTarget = {
    batches: async (packed) => {
      calls.push(packed)
      return packed.batches.map(() => ({ ok: true, rows: [] }))
    },
    operations: () => Promise.reject(new Error('no operations here')),
    operationsLeft: () => Promise.reject(new Error('no operations here')),
  }
  // Only its name is passed on.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const id = {} as ReturnType<ObjectNamespace<StoreTarget>['idFromName']>
  const namespace: ObjectNamespace<StoreTarget> = { idFromName: () => id, get: () => target }
  const storage = durableObjectStorage(namespace, { now: () => 0, keepAlive: () => {} })
  return { calls, db: storage.customer('c') }
}

test('batches of one moment share calls that stay far below what a call may carry', async () => {
  const { calls, db } = notedCalls()
  const write = { sql: 'INSERT INTO t VALUES (?)', params: ['x'.repeat(1_000_000)] }
  await Promise.all(Array.from({ length: 100 }, () => db.batch([write])))
  const sizes = calls.map((call) => JSON.stringify(call).length)
  expect(calls.flatMap(({ batches }) => batches)).toHaveLength(100)
  expect(Math.max(...sizes)).toBeLessThan(MAX_CALL_BYTES / 4)
  expect(calls.length).toBeLessThan(100)
})

test('a batch that only reads is in no call with writes', async () => {
  const { calls, db } = notedCalls()
  const read = { sql: 'SELECT 1', params: [] }
  const write = { sql: 'DELETE FROM t', params: [] }
  await Promise.all([db.batch([write]), db.batch([read]), db.batch([write]), db.batch([read])])
  const kinds = calls.map(({ texts }) => texts.join(' and '))
  expect(kinds.toSorted()).toEqual(['DELETE FROM t', 'SELECT 1', 'SELECT 1'])
})
