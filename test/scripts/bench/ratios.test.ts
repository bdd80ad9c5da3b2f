import { describe, expect, it } from 'vitest'
import { ratiosOf, ratioTable, regressionsOf } from '../../../scripts/bench/ratios.ts'
import { report, windowWith } from './reports.ts'

/** A system with these windows of whole answers, by their CPU; null: invalid. */
const named = (name: string, cpuUs: readonly (number | null)[]) => ({
  name,
  windows: {
    'whole-64': cpuUs.map((us) =>
      windowWith(us === null ? { invalid: '1 failed: status 503', cpuUs: 1 } : { cpuUs: us }),
    ),
  },
  memory: null,
  sizesMs: {},
})

describe('ratios to the floor', () => {
  it('are the median of the rounds, each against the floor of the same round', () => {
    const systems = [named('floor', [100, 200, 50]), named('router', [300, 800, 500])]
    expect(ratiosOf(report(systems))['request']).toBe(4)
  })

  it('leave out rounds in which either window is invalid', () => {
    const systems = [named('floor', [100, null, 50]), named('router', [300, 800, null])]
    expect(ratiosOf(report(systems))).toEqual({
      request: 3,
      'request, pinned': undefined,
      frame: undefined,
      'frame, pinned': undefined,
    })
  })

  it('are shown, with a dash where there is none', () => {
    const shown = ratioTable({ request: 3.456, frame: undefined })
    expect(shown).toContain('| request           | 3.46  |')
    expect(shown).toContain('| frame             | -     |')
  })
})

describe('a regression', () => {
  const accepted = { takenAt: '2026-11-22T12:00:00Z', ratios: { request: 4, frame: 2 } }

  it('is a ratio more than 30 percent above the accepted one', () => {
    expect(regressionsOf([{ request: 5.2, frame: 2.6 }], accepted)).toEqual([])
    expect(regressionsOf([{ request: 5.3, frame: 2 }], accepted)).toEqual([
      'request: 5.30 times the floor, accepted are 4.00',
    ])
  })

  it('is in every run, so that one run beside other work does not count', () => {
    const disturbed = { request: 9, frame: 2 }
    expect(regressionsOf([disturbed, { request: 4, frame: 2 }], accepted)).toEqual([])
    expect(regressionsOf([disturbed, { request: 6, frame: 9 }], accepted)).toEqual([
      'request: 6.00 times the floor, accepted are 4.00',
    ])
  })

  it('is a ratio that no run could measure', () => {
    expect(regressionsOf([{ request: 4 }, { request: 4 }], accepted)).toEqual([
      'frame: no valid window',
    ])
  })
})
