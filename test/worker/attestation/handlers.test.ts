import { expect, test } from 'vitest'
import { getAttestation } from '../../../src/worker/attestation/handlers.ts'
import type { Context } from '../../../src/worker/context.ts'
import { openSharedLimits } from '../../../src/worker/limits/shared-limits.ts'
import { told } from '../../support/refusal.ts'

test('a source that has used up its fresh attestations is refused for five seconds without asking the daemon', async () => {
  const clock = { now: 0 }
  const asked: (string | undefined)[] = []
  const attestation = async (fresh?: { readonly source: string }) => {
    asked.push(fresh?.source)
    return fresh === undefined
      ? { ok: true, envelope: '{}' }
      : { ok: false, reason: 'rate_limited' }
  }
  const link = { state: async () => ({}), attestation }
  // The handler takes no other part of a context.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const context = { link, shared: openSharedLimits(() => clock.now) } as unknown as Context
  const ask = (source: string, query = `?nonce=${'ab'.repeat(32)}`) => {
    const headers = { 'cf-connecting-ip': source }
    const request = new Request(`https://router.test/attestation${query}`, { headers })
    return getAttestation(request, context, {}).then(({ status }) => status, told)
  }
  const refused = { code: 'rate_limit_exceeded', message: 'Too many attestations were asked for.' }
  expect([await ask('a'), await ask('a'), await ask('b')]).toEqual([refused, refused, refused])
  expect(asked).toEqual(['a', 'b'])
  expect(await ask('a', '')).toBe(200)
  clock.now = 5_000
  expect(await ask('a')).toEqual(refused)
  expect(asked).toEqual(['a', 'b', undefined, 'a'])
})

test.each([
  ['twice', `?nonce=${'ab'.repeat(32)}&nonce=${'cd'.repeat(32)}`],
  ['in upper case', `?nonce=${'AB'.repeat(32)}`],
  ['too short', '?nonce=ab'],
  ['without a value', '?nonce='],
])('a nonce that is given %s is refused before the daemon is asked', async (_how, query) => {
  // Nothing of the context is used.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const context = {} as unknown as Context
  const asked = getAttestation(new Request(`https://router.test/attestation${query}`), context, {})
  expect(await asked.then(() => 'answered', told)).toEqual({
    code: 'invalid_parameter',
    message: 'The query parameter `nonce` must be 64 lowercase hex digits, given once.',
    param: 'nonce',
  })
})
