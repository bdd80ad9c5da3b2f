import { beforeEach, describe, expect, it, vi } from 'vitest'
import { insertCustomer } from '../../../src/worker/admin/customers.ts'
import { insertKey, markKeyDeleted } from '../../../src/worker/admin/keys.ts'
import { invalidKey, readApiKey } from '../../../src/worker/auth/authenticate.ts'
import { KeyGate } from '../../../src/worker/auth/key-gate.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import type { Keyring } from '../../../src/worker/auth/keyring.ts'
import { StorageUnavailable, type Storage } from '../../../src/worker/storage/database.ts'
import { openKeyring } from '../../support/keyring.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

const INVALID = { code: 'unauthorized', message: 'The API key is not valid.' }

const WRONG = new ApiError('missing_field', 'There is no model.')

let now = 0
let reads = 0
let failing = false
let customerId: string
let prefix: string
let request: Request
let context: { keyring: Keyring; storage: Storage }
let gate: KeyGate

beforeEach(async () => {
  now = 0
  const plain = sharedStorage(openSqlite())
  const storage: Storage = {
    directory: () => plain.directory(),
    customer: (id) => ({
      batch: (statements) => {
        reads += 1
        if (failing) throw new StorageUnavailable('away')
        return plain.customer(id).batch(statements)
      },
    }),
  }
  const keyring = openKeyring(storage)
  customerId = await keyring.newCustomerId()
  const made = keyring.newApiKey(customerId)
  prefix = made.prefix
  await insertCustomer(plain.customer(customerId), customerId, CUSTOMER, now)
  await insertKey(plain.customer(customerId), customerId, { ...made, name: 'k' }, now)
  request = new Request('http://router/', { headers: { authorization: `Bearer ${made.key}` } })
  context = { keyring, storage }
  gate = new KeyGate({
    now: () => now,
    pause: () => new Promise(() => {}),
    keepAlive: () => {},
  })
  reads = 0
  failing = false
})

const CUSTOMER = {
  name: 'acme',
  plan: 'standard',
  billing: 'prepaid',
  balanceNano: 0n,
  receiptRetentionDays: null,
} as const

const admit = () => gate.admit(request, context).then(({ customerId: id }) => id, told)

describe('the gate before a request', () => {
  it('lets a key in that exists, and asks the storage once in five minutes', async () => {
    expect(await admit()).toBe(customerId)
    now = 299_999
    expect(await admit()).toBe(customerId)
    expect(reads).toBe(1)
    now = 300_000
    expect(await admit()).toBe(customerId)
    expect(reads).toBe(2)
  })

  it('asks about a key again once an operation has refused it, and about no other refusal', async () => {
    expect(await admit()).toBe(customerId)
    const key = await readApiKey(request, context)
    await gate.judge(key, new ApiError('rate_limit_exceeded', 'Wait.'), context)
    expect(await admit()).toBe(customerId)
    expect(reads).toBe(1)
    const expired = new ApiError('key_expired', 'The API key has expired.')
    expect(await gate.judge(key, expired, context)).toBe(expired)
    expect(await admit()).toBe(customerId)
    expect(reads).toBe(2)
    await markKeyDeleted(context.storage.customer(customerId), customerId, prefix, now)
    await gate.judge(key, invalidKey(), context)
    reads = 0
    expect(await admit()).toEqual(INVALID)
    expect(await admit()).toEqual(INVALID)
    expect(reads).toBe(1)
  })

  it('answers a wrong request of a deleted key as one of a deleted key, however long it was known', async () => {
    expect(await admit()).toBe(customerId)
    const key = await readApiKey(request, context)
    await markKeyDeleted(context.storage.customer(customerId), customerId, prefix, now)
    now = 1_000
    expect(await admit()).toBe(customerId)
    expect(await gate.judge(key, WRONG, context)).toMatchObject(INVALID)
    reads = 0
    expect(await admit()).toEqual(INVALID)
    expect(reads).toBe(0)
  })

  it('answers a wrong request of a key that has expired meanwhile as one of an expired key', async () => {
    const ending = { ...context.keyring.newApiKey(customerId), name: 'e', expires_at: 500 }
    await insertKey(context.storage.customer(customerId), customerId, ending, now)
    const headers = { authorization: `Bearer ${ending.key}` }
    const enter = () => gate.admit(new Request('http://router/', { headers }), context)
    const key = await enter()
    now = 1_000
    const expired = { code: 'key_expired', message: 'The API key has expired.' }
    expect(await gate.judge(key, WRONG, context)).toMatchObject(expired)
    // Its next request is refused before its body is read.
    await expect(enter()).rejects.toMatchObject(expired)
  })

  it('asks once where many wrong requests of a key come at once', async () => {
    expect(await admit()).toBe(customerId)
    const key = await readApiKey(request, context)
    now = 1_000
    reads = 0
    const judged = Array.from({ length: 20 }, () => gate.judge(key, WRONG, context))
    for (const error of await Promise.all(judged)) expect(error).toBe(WRONG)
    expect(reads).toBe(1)
  })

  it('asks once a second about a key of wrong requests, and not at all about other failures', async () => {
    expect(await admit()).toBe(customerId)
    const key = await readApiKey(request, context)
    reads = 0
    for (now = 0; now < 3_000; now += 100) {
      expect(await gate.judge(key, WRONG, context)).toBe(WRONG)
    }
    expect(reads).toBe(2)
    const others = [
      new ApiError('insufficient_balance', 'No balance.'),
      new ApiError('bad_gateway', 'The provider failed.'),
      new StorageUnavailable('away'),
      new TypeError('a defect'),
    ]
    for (const other of others) expect(await gate.judge(key, other, context)).toBe(other)
    expect(reads).toBe(2)
  })

  it('answers a wrong request as such where the storage cannot say whether its key is valid', async () => {
    expect(await admit()).toBe(customerId)
    const key = await readApiKey(request, context)
    now = 1_000
    failing = true
    expect(await gate.judge(key, WRONG, context)).toBe(WRONG)
    failing = false
    expect(await admit()).toBe(customerId)
  })

  it('asks the storage about each of 12,000 keys in use once in five minutes', async () => {
    const requests = Array.from({ length: 12_000 }, () => {
      const { key } = context.keyring.newApiKey(customerId)
      return new Request('http://router/', { headers: { authorization: `Bearer ${key}` } })
    })
    const known = async () => {
      reads += 1
      return [[{ name: 'k', expires_at: null, ends_at: null }]]
    }
    const storage: Storage = { ...context.storage, customer: () => ({ batch: known }) }
    await gate.admit(request, context)
    reads = 0
    for (let round = 0; round < 2; round++) {
      for (const one of requests) await gate.admit(one, { ...context, storage })
    }
    expect(reads).toBe(requests.length)
  })

  it('digests a key that it found once in ten seconds', async () => {
    const digest = vi.spyOn(crypto.subtle, 'digest')
    expect(await admit()).toBe(customerId)
    now = 9_999
    expect(await admit()).toBe(customerId)
    expect(digest).toHaveBeenCalledTimes(1)
    now = 10_000
    const { key } = context.keyring.newApiKey(customerId)
    const other = new Request('http://router/', { headers: { authorization: `Bearer ${key}` } })
    expect(await gate.admit(other, context).catch(told)).toEqual(INVALID)
    expect(await gate.admit(other, context).catch(told)).toEqual(INVALID)
    expect(digest).toHaveBeenCalledTimes(3)
    digest.mockRestore()
  })

  it('keeps a key out that was deleted, and does not ask again', async () => {
    await markKeyDeleted(context.storage.customer(customerId), customerId, prefix, now)
    reads = 0
    expect(await admit()).toEqual(INVALID)
    expect(await admit()).toEqual(INVALID)
    expect(reads).toBe(1)
  })

  it('asks the storage for twenty wrong secrets of a customer id a second, by source, and for every key it knows', async () => {
    expect(await admit()).toBe(customerId)
    now = 300_000
    reads = 0
    const guess = (from: string) => {
      const { key } = context.keyring.newApiKey(customerId)
      const headers = { authorization: `Bearer ${key}`, 'cf-connecting-ip': from }
      return gate.admit(new Request('http://router/', { headers }), context).catch(told)
    }
    const guesses = async (from: string) => {
      const answers: unknown[] = []
      for (let count = 0; count < 25; count++) answers.push(await guess(from))
      return answers
    }
    const tooMany = {
      code: 'rate_limit_exceeded',
      message: 'Too many API keys that do not exist came from this address. Try again in a second.',
    }
    const expected = Array.from({ length: 25 }, (_, index) => (index < 20 ? INVALID : tooMany))
    expect([await guesses('192.0.2.1'), reads]).toEqual([expected, 20])
    expect(await guess('192.0.2.2')).toEqual(INVALID)
    // Its own key, which has to be looked up again after five minutes, is not affected, from no source.
    expect(await admit()).toBe(customerId)
    expect(reads).toBe(22)
    now = 301_000
    expect(await guess('192.0.2.1')).toEqual(INVALID)
  })

  it('does not take a storage that is away for a key that is missing', async () => {
    failing = true
    await expect(gate.admit(request, context)).rejects.toThrow(new StorageUnavailable('away'))
    failing = false
    expect(await admit()).toBe(customerId)
  })
})
