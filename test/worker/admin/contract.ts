import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { enterAction, enterOutcome, listActions } from '../../../src/worker/admin/audit-log.ts'
import { changeCustomer } from '../../../src/worker/admin/customers.ts'
import { listKeysOf, rotateKey, updateKey } from '../../../src/worker/admin/keys.ts'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { findKey } from '../../../src/worker/auth/authenticate.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import {
  addCustomer,
  askOf,
  deleteKey,
  NOW,
  readLedgerTotals,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'

type Instances = (id: string) => readonly [Database, Database]

/** Rotates a key; answers its new secret as it would be presented. */
async function rotated(
  db: Database,
  old: PresentedKey,
  secret: string,
  graceMs: number,
  now = NOW,
) {
  const { customerId, keyPrefix } = old
  const key = `${keyPrefix}_${secret}`
  const view = await rotateKey(
    db,
    customerId,
    { renewed: { key, prefix: keyPrefix }, graceMs },
    now,
  )
  return { view, key: { customerId, keyPrefix, keyHash: await sha256Hex(key) } }
}

/** What administration must do alike on every engine. */
export function describeAdministration(instances: Instances) {
  describe('a suspended customer', () => {
    test('is refused new requests, while those in progress are settled', async () => {
      const [left, right] = instances('suspended')
      const key = await addCustomer(left, { id: 'suspended', balance: 100n })
      await admit(left, askOf(key, 'suspended-1', { nano: 40n }))
      await changeCustomer(right, 'suspended', { suspended: true }, NOW)
      const refused = await rejectionOf(admit(left, askOf(key, 'suspended-2')))
      expect([refused.code, refused.status, refused.message]).toEqual([
        'customer_suspended',
        403,
        'The operator has suspended this account.',
      ])
      await commitSettlement(left, settlementOf(key, 'suspended-1', { nano: 30n }))
      const ledger = { balance: 70n, reserved: 0n, rows: 1, open: 0 }
      expect(await readLedgerTotals(right, 'suspended')).toEqual(ledger)
      await changeCustomer(right, 'suspended', { suspended: false }, NOW)
      await admit(left, askOf(key, 'suspended-3'))
    })

    test('gets nothing in that was not in before, however the two race', async () => {
      const [left, right] = instances('suspend-race')
      const key = await addCustomer(left, { id: 'suspend-race', billing: 'postpaid' })
      const race = Array.from({ length: 10 }, (_, index) =>
        admit(index % 2 ? left : right, askOf(key, `suspend-race-${index}`)),
      )
      const [, ...ends] = await Promise.allSettled([
        changeCustomer(right, 'suspend-race', { suspended: true }, NOW),
        ...race,
      ])
      const admitted = ends.filter(({ status }) => status === 'fulfilled').length
      expect(await readLedgerTotals(left, 'suspend-race')).toMatchObject({ open: admitted })
      const late = await rejectionOf(admit(left, askOf(key, 'suspend-race-late')))
      expect(late.code).toBe('customer_suspended')
    })
  })

  describe('a rotated key', () => {
    test('opens with both secrets until the grace time ends, on one account', async () => {
      const [left, right] = instances('rotated')
      const old = await addCustomer(left, { id: 'rotated', billing: 'postpaid' })
      const limits = { limit_eur: 50n, requests_per_minute: 3, models: ['glm-5'] }
      await updateKey(left, 'rotated', old.keyPrefix, limits, NOW)
      await admit(left, askOf(old, 'rotated-1', { nano: 20n }))
      const { view, key } = await rotated(right, old, 'new', 60_000)
      expect(view).toMatchObject({
        name: 'name of k1',
        models: ['glm-5'],
        limit_eur: '0.00000005',
        reserved_eur: '0.00000002',
        rotated_at: new Date(NOW).toISOString(),
        former_ends_at: new Date(NOW + 60_000).toISOString(),
      })
      await commitSettlement(left, settlementOf(old, 'rotated-1', { nano: 20n }))
      await admit(left, askOf(key, 'rotated-2', { nano: 20n }))
      // The cap is one: what the old secret holds and spent counts for the new one, and the other way round.
      const capped = await rejectionOf(admit(right, askOf(old, 'rotated-3', { nano: 20n })))
      expect(capped.code).toBe('insufficient_quota')
      await admit(right, askOf(old, 'rotated-4', { nano: 10n }))
      const paced = await rejectionOf(admit(right, askOf(key, 'rotated-5')))
      expect(paced.code).toBe('rate_limit_exceeded')
      const over = { now: NOW + 60_000 }
      const ended = await rejectionOf(admit(right, askOf(old, 'rotated-6', over)))
      expect([ended.code, ended.message]).toEqual(['key_expired', 'The API key has expired.'])
      await admit(right, askOf(key, 'rotated-7', over))
      const [listed] = (await listKeysOf(left, 'rotated', NOW + 60_000)) ?? []
      expect(listed?.former_ends_at).toBe(null)
    })

    test('is found by both secrets with the ends of their time, until it is deleted', async () => {
      const [left, right] = instances('found')
      const old = await addCustomer(left, { id: 'found', billing: 'postpaid' })
      const facts = { keyName: 'name of k1', expiresAt: null, secretEndsAt: null }
      expect(await findKey(left, old)).toEqual(facts)
      await updateKey(right, 'found', old.keyPrefix, { expires_at: NOW + 90_000 }, NOW)
      const { key } = await rotated(right, old, 'new', 60_000)
      const changed = { ...facts, expiresAt: NOW + 90_000 }
      expect(await findKey(left, key)).toEqual(changed)
      expect(await findKey(left, old)).toEqual({ ...changed, secretEndsAt: NOW + 60_000 })
      expect(await findKey(left, { ...key, keyHash: 'of another' })).toBeUndefined()
      expect(await findKey(left, { ...key, keyPrefix: 'cmr_found_k2' })).toBeUndefined()
      expect(await findKey(left, { ...key, customerId: 'nobody' })).toBeUndefined()
      await deleteKey(right, key)
      expect(await findKey(left, key)).toBeUndefined()
      expect(await findKey(left, old)).toBeUndefined()
    })

    test('that is rotated twice at once has two new secrets of which one is current', async () => {
      const [left, right] = instances('rotated-twice')
      const old = await addCustomer(left, { id: 'rotated-twice', billing: 'postpaid' })
      const [one, two] = await Promise.all([
        rotated(left, old, 'one', 60_000),
        rotated(right, old, 'two', 60_000),
      ])
      const keys = [old, one.key, two.key]
      for (const [index, key] of keys.entries()) {
        await admit(left, askOf(key, `rotated-twice-${index}`))
      }
      const late = await Promise.allSettled(
        keys.map((key, index) =>
          admit(right, askOf(key, `rotated-late-${index}`, { now: NOW + 60_000 })),
        ),
      )
      expect(late.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(late[0]?.status).toBe('rejected')
    })

    test('without grace ends every former secret at once', async () => {
      const [db] = instances('rotated-now')
      const old = await addCustomer(db, { id: 'rotated-now', billing: 'postpaid' })
      const first = await rotated(db, old, 'first', 60_000)
      const second = await rotated(db, old, 'second', 0)
      for (const key of [old, first.key]) {
        expect((await rejectionOf(admit(db, askOf(key, 'rotated-now-1')))).code).toBe('key_expired')
      }
      await admit(db, askOf(second.key, 'rotated-now-2'))
    })

    test('has at most ten former secrets in force, and none once it is deleted', async () => {
      const [db] = instances('rotated-full')
      const old = await addCustomer(db, { id: 'rotated-full', billing: 'postpaid' })
      for (let count = 0; count < 10; count++) {
        expect((await rotated(db, old, `secret-${count}`, 60_000)).view).not.toBe('full')
      }
      const eleventh = await rotated(db, old, 'secret-10', 60_000)
      expect(eleventh.view).toBe('full')
      const refused = await rejectionOf(admit(db, askOf(eleventh.key, 'rotated-full-1')))
      expect(refused.code).toBe('unauthorized')
      await admit(db, askOf(old, 'rotated-full-2'))
      const unknown = { ...old, keyPrefix: 'cmr_rotated-full_none' }
      expect((await rotated(db, unknown, 'x', 0)).view).toBe(undefined)
    })
  })

  test('the audit log answers pages, newest first', async () => {
    const [left, right] = instances('audit')
    const administrator = { tokenId: null, name: 'boot' }
    for (const [index, id] of ['a', 'b', 'c'].entries()) {
      const entry = { id, administrator, action: 'keys.create', target: null, changes: { index } }
      await enterAction(left, entry, NOW + index)
    }
    await enterOutcome(right, { id: 'c', status: 200, created: 'k' })
    const page = await listActions(right, { limit: 2, before: undefined })
    expect(page).toMatchObject([
      { id: 'c', status: 200, created: 'k', changes: { index: 2 } },
      { id: 'b', status: null, created: null },
    ])
    expect(await listActions(left, { limit: 2, before: 'b' })).toMatchObject([{ id: 'a' }])
    expect(await listActions(left, { limit: 2, before: 'a' })).toEqual([])
    expect(await listActions(left, { limit: 2, before: 'd' })).toBeUndefined()
  })
}
