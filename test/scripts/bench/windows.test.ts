import { describe, expect, it } from 'vitest'
import {
  COMMON_KINDS,
  FULL,
  LEDGER_KIND,
  warmUpFor,
  WHOLE_KINDS,
  windowPlan,
} from '../../../scripts/bench/windows.ts'

describe('the warm-up of a system', () => {
  it('is the same for every system that is measured in windows of the same kinds', () => {
    expect(warmUpFor(FULL.kinds)).toEqual(warmUpFor(COMMON_KINDS))
    expect(warmUpFor(['whole-64'])).toEqual(warmUpFor(WHOLE_KINDS))
  })

  it('is ten seconds of whole answers over 64 connections, then what else it is measured with', () => {
    const [whole, first, streams, ...more] = warmUpFor(COMMON_KINDS)
    expect(whole).toMatchObject({ behaviour: 'whole', connections: 64, windowMs: 10_000 })
    expect(first).toMatchObject({ behaviour: 'paced-8x0', stream: true })
    expect(streams).toEqual(windowPlan('streams-64', FULL))
    expect(more).toEqual([])
  })

  it('leaves out what a system is not measured with', () => {
    expect(warmUpFor(WHOLE_KINDS)).toHaveLength(1)
    expect(warmUpFor([LEDGER_KIND])).toEqual([
      expect.objectContaining({ connections: 16, windowMs: 10_000 }),
    ])
  })
})
