import { beforeEach, expect, test, vi } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { KeyTextCache } from '../../../src/worker/auth/key-text-cache.ts'

const KEY: PresentedKey = { customerId: 'acme', keyPrefix: 'cmr_acme_k1', keyHash: 'digest' }

let now = 0
let cache: KeyTextCache
let timers: { readonly dueAt: number; readonly fire: () => void }[]
let keptAlive: Promise<unknown>[]

beforeEach(() => {
  now = 0
  timers = []
  keptAlive = []
  cache = new KeyTextCache({
    now: () => now,
    pause: (ms) => new Promise((fire) => timers.push({ dueAt: now + ms, fire })),
    keepAlive: (work) => void keptAlive.push(work),
  })
})

/** Lets time pass, and the timers that end in it. */
async function until(time: number): Promise<void> {
  now = time
  for (const { dueAt, fire } of timers) if (dueAt <= time) fire()
  await Promise.resolve()
}

test('a key is known by its text for ten seconds, and not after the clock was set back', () => {
  now = 5_000
  cache.keep('text', KEY)
  expect(cache.get('text')).toBe(KEY)
  expect(cache.get('other text')).toBeUndefined()
  now = 14_999
  expect(cache.get('text')).toBe(KEY)
  now = 15_000
  expect(cache.get('text')).toBeUndefined()
  now = 4_999
  expect(cache.get('text')).toBeUndefined()
})

test('texts leave memory a second after the ten at the latest, without another request', async () => {
  const forgotten = vi.spyOn(Map.prototype, 'delete')
  cache.keep('first', KEY)
  now = 900
  cache.keep('second', KEY)
  forgotten.mockClear()
  await until(11_000)
  const texts = forgotten.mock.calls.flat()
  forgotten.mockRestore()
  expect(texts).toEqual(['first', 'second'])
})

test('at most one timer a second is started to forget texts, and its request is kept alive for it', () => {
  for (now = 0; now < 1_000; now += 250) cache.keep(`${now}`, KEY)
  expect(timers).toHaveLength(1)
  for (now = 1_000; now < 3_000; now += 250) cache.keep(`${now}`, KEY)
  expect(timers).toHaveLength(3)
  expect(keptAlive).toHaveLength(3)
})

test('of more than ten thousand texts the earliest is forgotten', () => {
  for (let count = 0; count <= 10_000; count++) cache.keep(`${count}`, KEY)
  expect(cache.get('0')).toBeUndefined()
  expect(cache.get('1')).toBe(KEY)
  // One that is kept again is no longer the earliest.
  cache.keep('1', KEY)
  cache.keep('new', KEY)
  expect(cache.get('1')).toBe(KEY)
  expect(cache.get('2')).toBeUndefined()
})
