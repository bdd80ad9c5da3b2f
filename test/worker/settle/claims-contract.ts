import { describe, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  CLAIM_HELD_MS,
  ClaimLost,
  findEarlier,
  keptBytes,
  renewClaim,
} from '../../../src/worker/settle/claims.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import { quarantine } from '../../../src/worker/settle/quarantine.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import type { Claim } from '../../../src/worker/storage/ledger-operations.ts'
import {
  addCustomer,
  addKey,
  askOf,
  NOW,
  readLedgerTotals,
  receiptOf,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'

const LIFETIME_MS = 30 * 60_000
const HOUR_MS = 60 * 60_000

const claimOf = (name: string, more: Partial<Claim> = {}): Claim => {
  const base = { fingerprint: `of ${name}`, lifetimeMs: LIFETIME_MS, customerBytes: 1_000 }
  return { name, ...base, ...more }
}

/** What claims of idempotency keys must do alike on every engine; `instances` are two of the worker. */
export function describeClaims(instances: (id: string) => readonly [Database, Database]): void {
  describe('a request with an Idempotency-Key', () => {
    const opened = async (id: string) => {
      const [left, right] = instances(id)
      const key = await addCustomer(left, { id, balance: 1_000n })
      const claim = claimOf(`claim of ${id}`)
      const request = (name: string, now = NOW) =>
        askOf(key, `${id}-${name}`, { nano: 10n, claim, now })
      const settled = (name: string, more: object = {}) =>
        settlementOf(key, `${id}-${name}`, { nano: 7n, claim, answer: 'sealed', ...more })
      const earlier = (now = NOW) => findEarlier(right, claim, id, now)
      return { left, right, key, claim, request, settled, earlier }
    }

    test('is admitted once, however many race from two instances', async () => {
      const { left, right, request } = await opened('claim-race')
      const ends = await Promise.allSettled(
        Array.from({ length: 16 }, (_, index) =>
          admit(index % 2 ? left : right, request(String(index))),
        ),
      )
      const refused = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
      expect(refused).toHaveLength(15)
      for (const reason of refused) {
        expect(reason).toMatchObject({ code: 'idempotency_in_progress', status: 409 })
      }
      expect(await readLedgerTotals(left, 'claim-race')).toMatchObject({ reserved: 10n, open: 1 })
    })

    test('is found with its answer and its receipt once it is billed, and until its time is over', async () => {
      const { left, request, settled, earlier, right } = await opened('claim-kept')
      await admit(left, request('1'))
      expect(await earlier()).toMatchObject({ done: false, answer: null, receiptId: null })
      await commitSettlement(left, settled('1', { receipt: receiptOf('claim-receipt') }))
      const found = {
        requestId: 'claim-kept-1',
        fingerprint: 'of claim of claim-kept',
        done: true,
        answer: 'sealed',
        receiptId: 'claim-receipt',
      }
      expect(await earlier(NOW + LIFETIME_MS - 1)).toEqual(found)
      expect((await rejectionOf(admit(right, request('2')))).code).toBe('idempotency_in_progress')
      expect(await earlier(NOW + LIFETIME_MS)).toBeUndefined()
      await admit(right, request('3', NOW + LIFETIME_MS))
      expect(await readLedgerTotals(left, 'claim-kept')).toMatchObject({
        rows: 1,
        balance: 993n,
        open: 1,
      })
    })

    test('can be carried out again once it was released, and settles twice to one bill', async () => {
      const { left, right, request, settled, earlier } = await opened('claim-free')
      await admit(left, request('1'))
      await releaseReservation(right, 'claim-free-1')
      expect(await earlier()).toBeUndefined()
      await admit(right, request('2'))
      await Promise.all([left, right, left].map((db) => commitSettlement(db, settled('2'))))
      await releaseReservation(left, 'claim-free-2')
      expect(await earlier()).toMatchObject({ done: true, answer: 'sealed' })
      expect(await readLedgerTotals(left, 'claim-free')).toMatchObject({ rows: 1, balance: 993n })
    })

    test('of a router that was killed is taken over, and the dead one cannot bill any more', async () => {
      const { left, right, claim, request, settled } = await opened('claim-dead')
      const owner = { requestId: 'claim-dead-1', customerId: 'claim-dead' }
      await admit(left, request('1'))
      const later = NOW + CLAIM_HELD_MS - 1
      expect((await rejectionOf(admit(right, request('2', later)))).status).toBe(409)
      expect(await renewClaim(left, claim, owner, later)).toBe(true)
      const renewed = later + CLAIM_HELD_MS - 1
      expect((await rejectionOf(admit(right, request('3', renewed)))).status).toBe(409)
      await admit(right, request('4', renewed + 1))
      expect(await renewClaim(left, claim, owner, renewed + 1)).toBe(false)
      await expect(commitSettlement(left, settled('1'))).rejects.toThrow(new ClaimLost())
      await commitSettlement(right, settled('4'))
      await expect(commitSettlement(left, settled('1'))).rejects.toThrow(new ClaimLost())
      expect(await readLedgerTotals(left, 'claim-dead')).toMatchObject({ rows: 1, balance: 993n })
    })

    test('of a router that was killed is taken over after a minute, also where the clock was set back since', async () => {
      const { left, right, request, earlier } = await opened('claim-back')
      await admit(left, request('1', NOW + HOUR_MS))
      expect(await earlier(NOW)).toMatchObject({ done: false })
      const later = NOW + CLAIM_HELD_MS - 1
      expect(await earlier(later)).toMatchObject({ done: false })
      expect((await rejectionOf(admit(right, request('2', later)))).code).toBe(
        'idempotency_in_progress',
      )
      expect(await earlier(later + 1)).toBeUndefined()
      await admit(right, request('3', later + 1))
    })

    test('is kept by its owner where the clock is set back while it runs', async () => {
      const { left, right, claim, request, settled, earlier } = await opened('claim-runs')
      const owner = { requestId: 'claim-runs-1', customerId: 'claim-runs' }
      await admit(left, request('1', NOW + HOUR_MS))
      expect(await earlier(NOW)).toMatchObject({ done: false })
      expect(await renewClaim(left, claim, owner, NOW + 20_000)).toBe(true)
      const later = NOW + CLAIM_HELD_MS
      expect(await earlier(later)).toMatchObject({ done: false })
      expect((await rejectionOf(admit(right, request('2', later)))).status).toBe(409)
      await commitSettlement(left, settled('1', { createdAtMs: later }))
      expect(await earlier(later + LIFETIME_MS - 1)).toMatchObject({ answer: 'sealed' })
    })

    test('lasts as long as it was taken for by a worker whose clock is less than a minute ahead', async () => {
      const { left, request, earlier } = await opened('claim-ahead')
      await admit(left, request('1', NOW + CLAIM_HELD_MS - 1))
      expect(await earlier(NOW)).toMatchObject({ done: false })
      expect(await earlier(NOW + 2 * CLAIM_HELD_MS - 2)).toMatchObject({ done: false })
      expect(await earlier(NOW + 2 * CLAIM_HELD_MS - 1)).toBeUndefined()
    })

    test('bars a former owner for as long as it could settle, though the answer goes before', async () => {
      const { left, right, request, settled, earlier } = await opened('claim-fence')
      const longest = NOW + 4 * LIFETIME_MS
      await admit(left, { ...request('1'), expiresAt: longest })
      await admit(right, request('2', NOW + CLAIM_HELD_MS))
      await commitSettlement(right, settled('2', { createdAtMs: NOW + CLAIM_HELD_MS }))
      const over = NOW + CLAIM_HELD_MS + LIFETIME_MS
      await sweepAll(left, over)
      expect(await earlier(NOW)).toMatchObject({ done: true, answer: null })
      await expect(commitSettlement(left, settled('1'))).rejects.toThrow(new ClaimLost())
      await sweepAll(left, longest)
      expect(await earlier(NOW)).toBeUndefined()
    })

    test('is not carried out again while its bill waits in quarantine', async () => {
      const { left, request, settled, earlier } = await opened('claim-apart')
      await admit(left, request('1'))
      await quarantine(left, settled('1'), NOW)
      await releaseReservation(left, 'claim-apart-1')
      expect(await earlier(NOW + CLAIM_HELD_MS)).toMatchObject({ done: true, answer: null })
    })

    test('bars a former owner for as long as it could settle, too, while the bill waits in quarantine', async () => {
      const { left, right, request, settled, earlier } = await opened('claim-both')
      const longest = NOW + 4 * LIFETIME_MS
      await admit(left, { ...request('1'), expiresAt: longest })
      const takenOver = NOW + CLAIM_HELD_MS
      await admit(right, request('2', takenOver))
      await quarantine(right, settled('2'), takenOver)
      await releaseReservation(right, 'claim-both-2')
      await sweepAll(left, takenOver + LIFETIME_MS)
      await expect(commitSettlement(left, settled('1'))).rejects.toThrow(new ClaimLost())
      await sweepAll(left, longest)
      expect(await earlier(NOW)).toBeUndefined()
    })

    test('of one customer is none of another', async () => {
      const { left, claim, request, settled } = await opened('claim-mine')
      const theirs = await addCustomer(left, { id: 'claim-theirs', balance: 1_000n })
      await admit(left, request('1'))
      await commitSettlement(left, settled('1'))
      expect(await findEarlier(left, claim, 'claim-theirs', NOW)).toBeUndefined()
      await admit(left, askOf(theirs, 'claim-theirs-1', { claim }))
    })

    test('with another key of the same customer is the same request', async () => {
      const { left, claim, request } = await opened('claim-keys')
      await admit(left, request('1'))
      const other = await addKey(left, 'claim-keys', 'k2')
      const repeat = admit(left, askOf(other, 'claim-keys-2', { claim }))
      expect((await rejectionOf(repeat)).code).toBe('idempotency_in_progress')
    })

    test('that was refused leaves no claim', async () => {
      const { left, key, claim, earlier } = await opened('claim-poor')
      const dear = admit(left, askOf(key, 'claim-poor-1', { nano: 2_000n, claim }))
      expect((await rejectionOf(dear)).code).toBe('insufficient_balance')
      expect(await earlier()).toBeUndefined()
    })

    test('makes room for its answer among those of its customer: the oldest go', async () => {
      const [left] = instances('claim-room')
      const key = await addCustomer(left, { id: 'claim-room', billing: 'postpaid' })
      for (let index = 0; index < 4; index++) {
        const claim = claimOf(`room ${index}`)
        const request = `claim-room-${index}`
        await admit(left, askOf(key, request, { claim }))
        const answer = 'x'.repeat(400)
        const row = { claim, answer, createdAtMs: NOW + index }
        await commitSettlement(left, settlementOf(key, request, row))
      }
      const kept = await Promise.all(
        [0, 1, 2, 3].map(async (index) => {
          const found = await findEarlier(left, claimOf(`room ${index}`), 'claim-room', NOW)
          return [found?.done, found?.answer?.length]
        }),
      )
      expect(kept).toEqual([
        [true, undefined],
        [true, undefined],
        [true, 400],
        [true, 400],
      ])
      const sum = await keptBytes(left)
      expect(sum).toBeGreaterThanOrEqual(800)
      await sweepAll(left, NOW + 4 + LIFETIME_MS)
      expect(await findEarlier(left, claimOf('room 3'), 'claim-room', NOW)).toBeUndefined()
    })
  })
}
