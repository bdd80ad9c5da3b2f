import { describe, expect, test } from 'vitest'
import { toHex, type Bytes } from '../../../src/protocol/bytes.ts'
import { requireLaunchBinding } from '../../../src/verify/providers/launch-binding.ts'

const ZERO = new Uint8Array(32)
const SET = new Uint8Array(32).fill(7)
const REFUSED = {
  code: 'launch_binding',
  message:
    'the guest was started with data beside its measurement that is not pinned (mr_config_id)',
}

const judge = (value: Bytes, pinned?: readonly string[]) => () =>
  requireLaunchBinding('mr_config_id', value, pinned)

describe('the data that a host starts a guest with', () => {
  test('is accepted unpinned where all of it is zero', () => {
    expect(judge(ZERO)).not.toThrow()
  })

  test.each([0, 1, 15, 31])('is refused unpinned where byte %i alone is not zero', (at) => {
    expect(judge(ZERO.with(at, 1))).toThrow(expect.objectContaining(REFUSED))
  })

  test.each([0, 31])('is refused unpinned where byte %i alone is zero', (at) => {
    expect(judge(SET.with(at, 0))).toThrow(expect.objectContaining(REFUSED))
  })

  test('is accepted where it is a pinned value', () => {
    expect(judge(SET, [toHex(ZERO), toHex(SET)])).not.toThrow()
  })

  test('is refused where it is none of the pinned values, zero included', () => {
    expect(judge(SET.with(31, 8), [toHex(SET)])).toThrow(expect.objectContaining(REFUSED))
    expect(judge(ZERO, [toHex(SET)])).toThrow(expect.objectContaining(REFUSED))
    expect(judge(ZERO, [])).toThrow(expect.objectContaining(REFUSED))
  })
})
