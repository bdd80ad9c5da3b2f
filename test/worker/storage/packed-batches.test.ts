import { describe, expect, it } from 'vitest'
import { packBatches, unpackBatches } from '../../../src/worker/storage/packed-batches.ts'

const batches = [
  [
    { sql: 'A', params: ['1', 2, null] },
    { sql: 'B', params: [] },
  ],
  [],
  [{ sql: 'A', params: ['3'], customerId: 'c' }],
]

describe('packed batches', () => {
  it('are the same batches once unpacked, in order', () => {
    expect(unpackBatches(packBatches(batches))).toEqual(batches)
  })

  it('hold each text once', () => {
    expect(packBatches(batches).texts).toEqual(['A', 'B'])
  })

  it('are refused when they name a text they do not bring', () => {
    expect(() => unpackBatches({ texts: [], batches: [[[0, []]]] })).toThrow(
      'internal error: a statement without its text',
    )
  })
})
