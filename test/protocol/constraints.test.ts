import { describe, expect, it } from 'vitest'
import {
  constraintsSchema,
  formatConstraints,
  isAtLeastAsStrict,
  normalized,
  parseConstraints,
  STRENGTHS,
  unmetConstraint,
  withMinimum,
  type Constraints,
} from '../../src/protocol/constraints.ts'
import { OS_UNPINNED } from '../../src/verify/providers/judged-evidence.ts'

const E1 = 'e1'.repeat(32)
const E2 = 'e2'.repeat(32)

describe('constraints on the provider', () => {
  it('are met by a strength that is the same or stronger, and by no unknown one', () => {
    const met = (min: Constraints['min'], strength: string) =>
      unmetConstraint({ min }, { provider: 'nova', strength, evidenceSha256: E1 }) === undefined
    for (const [rank, min] of STRENGTHS.entries()) {
      for (const [other, strength] of STRENGTHS.entries()) {
        expect(met(min, strength)).toBe(other >= rank)
      }
      expect(met(min, 'invincible')).toBe(false)
      expect(met(min, '')).toBe(false)
    }
    expect(STRENGTHS).toContain(OS_UNPINNED)
  })

  it('name the first that is not met, of provider and evidence too', () => {
    const peer = { provider: 'nova', strength: 'hardware', evidenceSha256: E1 }
    expect(unmetConstraint({ providers: ['vega', 'nova'], evidence_sha256: [E2, E1] }, peer)).toBe(
      undefined,
    )
    expect(unmetConstraint({ providers: ['vega'] }, peer)).toBe('providers')
    expect(unmetConstraint({ providers: ['NOVA'] }, peer)).toBe('providers')
    expect(unmetConstraint({ evidence_sha256: [E2] }, peer)).toBe('evidence_sha256')
    expect(unmetConstraint({ evidence_sha256: [E1] }, { ...peer, evidenceSha256: null })).toBe(
      'evidence_sha256',
    )
  })

  it.each([
    ['min=hardware', { min: 'hardware' }],
    [
      ' min = hardware ;providers= vega , nova,vega ',
      { min: 'hardware', providers: ['nova', 'vega'] },
    ],
    [`evidence_sha256=${E2},${E1}`, { evidence_sha256: [E1, E2] }],
  ])('are read from %s', (text, expected) => {
    const read = parseConstraints(text)
    expect(read).toEqual(expected)
    expect(read && parseConstraints(formatConstraints(read))).toEqual(expected)
  })

  it.each([
    '',
    ';',
    'hardware',
    'min=',
    'min=Hardware',
    'min=strongest',
    'min=hardware;',
    'min=hardware; min=none',
    // Two header lines, which HTTP joins with a comma.
    'min=hardware, min=none',
    'providers=nova, providers=vega',
    'providers=',
    'providers=no/va',
    `providers=${Array.from({ length: 33 }, (_, index) => `p${index}`).join(',')}`,
    `evidence_sha256=${E1.toUpperCase()}`,
    'evidence_sha256=e1',
    'max=hardware',
    '__proto__=hardware',
    'min=hardware; note=please',
  ])('refuse %j', (text) => {
    expect(parseConstraints(text)).toBe(undefined)
  })

  it.each([{}, { min: null }, { min: 'hardware', max: 'none' }, { providers: [] }, [], 'hardware'])(
    'refuse the member %j',
    (value) => {
      expect(constraintsSchema.safeParse(value).success).toBe(false)
    },
  )

  it('have one form, whatever the order and however often an entry is given', () => {
    expect(normalized({ providers: ['b', 'a', 'b'] })).toEqual({ providers: ['a', 'b'] })
  })

  it('are raised to the minimum of a key and never lowered', () => {
    expect(withMinimum(undefined, null)).toBe(undefined)
    expect(withMinimum(undefined, 'simulated')).toEqual({ min: 'simulated' })
    expect(withMinimum({ min: 'hardware' }, 'simulated')).toEqual({ min: 'hardware' })
    expect(withMinimum({ min: 'none', providers: ['a'] }, 'hardware')).toEqual({
      min: 'hardware',
      providers: ['a'],
    })
  })

  it('are compared by what they let through', () => {
    const asked = { min: 'simulated', providers: ['a', 'b'] } as const
    const strict = (held: Constraints) =>
      isAtLeastAsStrict(held, { ...asked, providers: [...asked.providers] })
    expect(strict({ min: 'hardware', providers: ['a'] })).toBe(true)
    expect(strict({ min: 'none', providers: ['a'] })).toBe(false)
    expect(strict({ min: 'hardware' })).toBe(false)
    expect(strict({ min: 'hardware', providers: ['a', 'c'] })).toBe(false)
    expect(isAtLeastAsStrict({ evidence_sha256: [E1] }, { evidence_sha256: [E1, E2] })).toBe(true)
    expect(isAtLeastAsStrict({ min: 'hardware' }, { evidence_sha256: [E1] })).toBe(false)
  })
})
