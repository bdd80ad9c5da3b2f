import { describe, expect, test } from 'vitest'
import { AttestationUnavailable } from '../../src/client/errors.ts'
import { proveAgain, readRetryAfter } from '../../src/client/prove-again.ts'

const limited = (retryAfterSeconds?: number) =>
  new AttestationUnavailable('too many', { retryAfterSeconds })

/** An attempt that fails so before it succeeds, and the pauses that were made. */
async function proving(...failures: readonly Error[]) {
  const pauses: number[] = []
  const left = [...failures]
  const outcome = await proveAgain(
    async () => {
      const failure = left.shift()
      if (failure !== undefined) throw failure
      return 'proven'
    },
    {
      isTransient: (error) => error instanceof RangeError,
      pause: async (milliseconds) => void pauses.push(milliseconds),
    },
  ).catch((error: unknown) => error)
  return { outcome, pauses }
}

describe('a host is proven again', () => {
  test('after the time that it names when it has given too many reports', async () => {
    expect(await proving(limited(30))).toEqual({ outcome: 'proven', pauses: [30_000] })
  })

  test('twice and no more', async () => {
    const last = limited(3)
    expect(await proving(limited(1), limited(2), last)).toEqual({
      outcome: last,
      pauses: [1000, 2000],
    })
  })

  test('in a moment when its key is being replaced', async () => {
    const last = new RangeError('3')
    expect(await proving(new RangeError('1'), new RangeError('2'), last)).toEqual({
      outcome: last,
      pauses: [100, 400],
    })
  })

  test.each([
    ['refused', new TypeError('refused')],
    ['has none and names no time', limited()],
    ['names more than a minute', limited(61)],
  ])('never when its evidence is %s', async (_what, failure) => {
    expect(await proving(failure)).toEqual({ outcome: failure, pauses: [] })
  })
})

test.each([
  ['30', { retryAfterSeconds: 30 }],
  ['Sun, 22 Nov 2026 09:00:00 GMT', {}],
  ['-1', {}],
  [null, {}],
  [undefined, {}],
])('Retry-After %j is read as %j', (value, expected) => {
  expect(readRetryAfter(value)).toEqual(expected)
})
