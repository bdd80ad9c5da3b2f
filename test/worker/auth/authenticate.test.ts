import { describe, expect, it } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { authenticate, readApiKey } from '../../../src/worker/auth/authenticate.ts'
import { openKeyring } from '../../support/keyring.ts'
import type { Database, Storage } from '../../../src/worker/storage/database.ts'
import { insertKey, markKeyDeleted, updateKey } from '../../../src/worker/admin/keys.ts'
import { insertCustomer } from '../../../src/worker/admin/customers.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

const CUSTOMER = {
  name: 'acme',
  plan: 'standard',
  billing: 'prepaid',
  balanceNano: 0n,
  receiptRetentionDays: null,
} as const

const MISSING = {
  code: 'unauthorized',
  message: 'An API key is needed: send it as "Authorization: Bearer <key>".',
}
const INVALID = { code: 'unauthorized', message: 'The API key is not valid.' }

const requestWith = (authorization?: string) =>
  new Request('http://router/', authorization === undefined ? {} : { headers: { authorization } })

const refusalOf = (promise: Promise<unknown>) => promise.then(() => undefined, told)

/** A storage whose customers may not be touched. */
function directoryOnly(directory: Database): Storage {
  return {
    customer: () => {
      throw new Error('a customer was addressed')
    },
    directory: () => directory,
  }
}

describe('reading an API key', () => {
  it('distinguishes a missing key from an invalid one', async () => {
    const keyring = openKeyring(sharedStorage(openSqlite()))
    for (const authorization of [undefined, 'Basic YTpi', 'Bearer', 'Bearer a b']) {
      expect(await refusalOf(readApiKey(requestWith(authorization), { keyring }))).toEqual(MISSING)
    }
    expect(await refusalOf(readApiKey(requestWith('Bearer sk-1'), { keyring }))).toEqual(INVALID)
  })

  it('gives customer, prefix and hash, whatever the case of the scheme', async () => {
    const keyring = openKeyring(sharedStorage(openSqlite()))
    const customerId = await keyring.newCustomerId()
    const { key, prefix } = keyring.newApiKey(customerId)
    const presented = { customerId, keyPrefix: prefix, keyHash: await sha256Hex(key) }
    for (const scheme of ['Bearer', 'bearer', 'BEARER ']) {
      expect(await readApiKey(requestWith(`${scheme} ${key}`), { keyring })).toEqual(presented)
    }
  })

  it('refuses an invented customer before any customer is addressed', async () => {
    const storage = directoryOnly(openSqlite())
    const keyring = openKeyring(storage)
    const { key } = keyring.newApiKey('0'.repeat(28))
    const request = requestWith(`Bearer ${key}`)
    expect(await refusalOf(authenticate(request, { keyring, storage, now: () => 10 }))).toEqual(
      INVALID,
    )
  })
})

describe('authenticating', () => {
  it('finds the owner of a key until it is deleted', async () => {
    const storage = sharedStorage(openSqlite())
    const keyring = openKeyring(storage)
    const customerId = await keyring.newCustomerId()
    const made = keyring.newApiKey(customerId)
    const db = storage.customer(customerId)
    await insertCustomer(db, customerId, CUSTOMER, 0)
    const caller = () =>
      authenticate(requestWith(`Bearer ${made.key}`), { keyring, storage, now: () => 10 })
    expect(await refusalOf(caller())).toEqual(INVALID)
    await insertKey(db, customerId, { ...made, name: 'laptop' }, 0)
    expect(await caller()).toEqual({ customerId, keyPrefix: made.prefix, keyName: 'laptop' })
    const other = `${made.key.slice(0, -1)}${made.key.endsWith('0') ? '1' : '0'}`
    const wrong = authenticate(requestWith(`Bearer ${other}`), { keyring, storage, now: () => 10 })
    expect(await refusalOf(wrong)).toEqual(INVALID)
    await updateKey(db, customerId, made.prefix, { expires_at: 10 }, 0)
    expect(await refusalOf(caller())).toEqual({
      code: 'key_expired',
      message: 'The API key has expired.',
    })
    await updateKey(db, customerId, made.prefix, { expires_at: 11 }, 0)
    expect(await caller()).toMatchObject({ keyPrefix: made.prefix })
    await markKeyDeleted(db, customerId, made.prefix, 1)
    expect(await refusalOf(caller())).toEqual(INVALID)
  })
})

describe('the keyring', () => {
  it('reads the secret once and shares it with every other keyring of the storage', async () => {
    let reads = 0
    const sqlite = openSqlite()
    const counted: Database = {
      batch: (statements) => {
        reads++
        return sqlite.batch(statements)
      },
    }
    const [one, two] = [openKeyring(sharedStorage(counted)), openKeyring(sharedStorage(counted))]
    const id = await one.newCustomerId()
    expect(await one.knows(id)).toBe(true)
    expect(await two.knows(id)).toBe(true)
    expect(await two.cacheSalt(id)).toBe(await one.cacheSalt(id))
    expect(await one.cacheSalt(id)).toMatch(/^[0-9a-f]{64}$/)
    expect(await one.cacheSalt(id)).not.toBe(await one.cacheSalt(await one.newCustomerId()))
    expect(reads).toBe(2)
  })

  it('tries again after the storage failed', async () => {
    const sqlite = openSqlite()
    let down = true
    const flaky: Database = {
      batch: async (statements) => {
        if (down) throw new Error('down')
        return sqlite.batch(statements)
      },
    }
    const keyring = openKeyring(sharedStorage(flaky))
    await expect(keyring.newCustomerId()).rejects.toThrow('down')
    down = false
    expect(await keyring.knows(await keyring.newCustomerId())).toBe(true)
  })
})
