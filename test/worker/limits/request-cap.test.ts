import { describe, expect, test } from 'vitest'
import { RequestCap } from '../../../src/worker/limits/request-cap.ts'
import { refusalOf } from '../../support/refusal.ts'

const FULL = {
  code: 'service_unavailable',
  message: 'The router already has as many open requests as it can handle.',
}

const MEMORY_FULL = {
  code: 'service_unavailable',
  message: 'The router holds as many request bodies as it can carry.',
}

const SHARE_TAKEN = {
  code: 'rate_limit_exceeded',
  message:
    'The router holds as many of your request bodies as it can carry beside those of others.',
}

describe('the cap on requests in progress', () => {
  test('refuses one more than it carries', () => {
    const cap = new RequestCap(2)
    const first = cap.enter('a')
    cap.enter('b')
    expect(refusalOf(() => cap.enter('c'))).toEqual(FULL)
    first.leave()
    expect(cap.enter('c')).toBeDefined()
  })

  test('gives no customer all of it', () => {
    const cap = new RequestCap(20)
    for (let i = 0; i < 10; i++) cap.enter('greedy')
    expect(refusalOf(() => cap.enter('greedy'))).toEqual({
      code: 'rate_limit_exceeded',
      message: 'You already have as many open requests as your share of the router allows.',
    })
    expect(cap.enter('other')).toBeDefined()
  })

  test('counts a request until it is answered and all of its work has ended, in whatever way', async () => {
    const cap = new RequestCap(1)
    const permit = cap.enter('a')
    const stream = Promise.withResolvers<void>()
    const failing = Promise.withResolvers<void>()
    permit.keepDuring(stream.promise)
    permit.keepDuring(failing.promise)
    permit.leave()
    permit.leave()
    expect(cap.openRequests).toBe(1)
    stream.resolve()
    await stream.promise
    expect(cap.openRequests).toBe(1)
    failing.reject(new Error('broken'))
    await failing.promise.catch(() => {})
    expect(cap.openRequests).toBe(0)
  })
})

test('work that goes on after the answer, as that of a streamed export, gives nothing back twice', async () => {
  const cap = new RequestCap(10, 1_000)
  const permit = cap.enter('exporting')
  permit.takeMemory(400)
  permit.leave()
  for (let page = 0; page < 3; page++) {
    const rest = Promise.resolve()
    permit.keepDuring(rest)
    await rest
  }
  await Promise.resolve()
  expect(cap.openRequests).toBe(0)
  expect(refusalOf(() => cap.enter('other').takeMemory(1_001))).toMatchObject({
    code: 'service_unavailable',
  })
})

describe('the memory of bodies', () => {
  test('of a refused request is free at once for those that grow beside it', () => {
    const cap = new RequestCap(100, 1_000)
    const permits = [1, 2, 3, 4].map(() => cap.enter('greedy'))
    for (const permit of permits) permit.takeMemory(120)
    expect(refusalOf(() => permits[0]?.takeMemory(100))).toEqual(SHARE_TAKEN)
    permits[1]?.takeMemory(100)
    for (const permit of permits) permit.leave()
    // Nothing was given back twice.
    expect(refusalOf(() => cap.enter('other').takeMemory(1_001))).toEqual(MEMORY_FULL)
    cap.enter('other').takeMemory(1_000)
  })

  test('stays counted where the request goes on without what it was refused', () => {
    const cap = new RequestCap(100, 1_000)
    const streaming = cap.enter('greedy')
    streaming.takeMemory(400)
    expect(refusalOf(() => streaming.takeMemory(300, 'request goes on'))).toMatchObject({
      code: 'rate_limit_exceeded',
    })
    const other = cap.enter('other')
    expect(refusalOf(() => other.takeMemory(601))).toMatchObject({ code: 'service_unavailable' })
    other.takeMemory(600)
    other.leave()
    streaming.leave()
    cap.enter('other').takeMemory(1_000)
  })

  test('is shared out as well, and given back with the request', () => {
    const cap = new RequestCap(100, 1_000)
    const permits = [1, 2, 3].map(() => cap.enter('greedy'))
    for (const permit of permits.slice(0, 2)) permit.takeMemory(250)
    expect(refusalOf(() => permits[2]?.takeMemory(1_001))).toEqual(MEMORY_FULL)
    expect(refusalOf(() => permits[2]?.takeMemory(50))).toEqual(SHARE_TAKEN)
    const other = cap.enter('other')
    other.takeMemory(200)
    other.leave()
    for (const permit of permits) permit.leave()
    cap.enter('greedy').takeMemory(1_000)
  })
})
