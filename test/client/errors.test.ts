import { describe, expect, test } from 'vitest'
import { AttestationRefused } from '../../src/client/errors.ts'

describe('why a router is not proven', () => {
  test('is said without the characters by which evidence could control a terminal', () => {
    const checks = [
      {
        name: 'trust_bundle_header',
        ok: false,
        detail: 'typ is \u001b[2J\r\nnöte\u009b',
        proves: '',
      },
    ]
    const { failed, message } = new AttestationRefused(checks, {
      document: 'workload manifest',
      reason: 'members: \u202e\u2028',
    })
    expect(failed).toEqual(['trust_bundle_header', 'workload manifest'])
    expect(message).toBe(
      'the router is not proven: trust_bundle_header: typ is ?[2J??nöte?; workload manifest: members: ??',
    )
  })
})
