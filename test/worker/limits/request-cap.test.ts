import { describe, expect, test } from 'vitest'
import { RequestCap } from '../../../src/worker/limits/request-cap.ts'
import { refusalOf } from '../../support/refusal.ts'

describe('the cap on requests at work', () => {
  test('refuses one more than it carries', () => {
    const cap = new RequestCap(2)
    const first = cap.enter()
    cap.enter()
    expect(refusalOf(() => cap.enter())).toEqual({
      code: 'service_unavailable',
      message: 'The router is at work on as many requests as it can carry.',
    })
    first.leave()
    expect(cap.enter()).toBeDefined()
  })

  test('counts a request until it is answered and all of its work has ended, in whatever way', async () => {
    const cap = new RequestCap(1)
    const permit = cap.enter()
    const stream = Promise.withResolvers<void>()
    const failing = Promise.withResolvers<void>()
    permit.keepDuring(stream.promise)
    permit.keepDuring(failing.promise)
    permit.leave()
    permit.leave()
    expect(cap.seated).toBe(1)
    stream.resolve()
    await stream.promise
    expect(cap.seated).toBe(1)
    failing.reject(new Error('broken'))
    await failing.promise.catch(() => {})
    expect(cap.seated).toBe(0)
  })
})
