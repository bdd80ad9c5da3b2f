import { describe, expect, it } from 'vitest'
import { attemptShare } from '../../../src/worker/routing/attempt-share.ts'

describe('the share of an attempt', () => {
  it.each([
    ['half of what is left', 180_000, undefined, 90_000, true],
    ['not under five seconds', 7_000, undefined, 5_000, true],
    ['never so much that no other route could be asked', 6_000, undefined, 4_800, true],
    [
      'too short to tell anything of the route for a caller in a hurry',
      3_000,
      undefined,
      2_400,
      false,
    ],
    ['what the operator set', 180_000, 600, 600, true],
    ['what the operator set, but never all that is left', 1_000, 5_000, 800, false],
    ['nothing when nothing is left', 0, undefined, 0, false],
  ] as const)('is %s', (_, left, configured, ms, conclusive) => {
    expect(attemptShare(left, configured)).toEqual({ ms, conclusive })
  })
})
