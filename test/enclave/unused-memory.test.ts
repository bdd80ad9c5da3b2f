import { expect, it } from 'vitest'
import { returnUnusedMemory } from '../../src/enclave/unused-memory.ts'

const MIB = 1024 * 1024

it('memory that is no longer used is returned', () => {
  let garbage: object[] | undefined = Array.from({ length: 2_000_000 }, (_, index) => ({ index }))
  const held = process.memoryUsage().heapTotal
  expect(garbage).toHaveLength(2_000_000)
  garbage = undefined
  returnUnusedMemory()
  expect(process.memoryUsage().heapTotal).toBeLessThan(held - 16 * MIB)
  expect('gc' in globalThis).toBe(false)
})
