import { describe, expect, test } from 'vitest'
import { admit } from '../../../src/worker/settle/admit.ts'
import { KeptAnswers } from '../../../src/worker/settle/kept-answers.ts'
import { commitSettlement } from '../../../src/worker/settle/ledger.ts'
import { sweepAll } from '../../../src/worker/settle/sweep.ts'
import { addCustomer, askOf, NOW, settlementOf } from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

const LIFETIME_MS = 60_000

describe('the room for answers that are kept for repeats', () => {
  test('is one for all customers together, recomputed after a while, and free again once they expire', async () => {
    const db = openSqlite()
    let now = NOW
    const kept = new KeptAnswers(() => now)
    for (const id of ['one', 'two', 'three']) {
      const key = await addCustomer(db, { id, billing: 'postpaid' })
      const base = { name: id, fingerprint: 'f', lifetimeMs: LIFETIME_MS, customerBytes: 1_000 }
      await admit(db, askOf(key, `request-${id}`, { claim: base }))
      const answer = 'x'.repeat(400)
      await commitSettlement(
        db,
        settlementOf(key, `request-${id}`, { claim: base, answer, createdAtMs: NOW }),
      )
    }
    expect(await kept.hasRoom(db, 1_201)).toBe(true)
    expect(await kept.hasRoom(db, 1_200)).toBe(false)
    now = NOW + LIFETIME_MS
    await sweepAll(db, now)
    expect(await kept.hasRoom(db, 1)).toBe(true)
    // A sum is not read again for every answer.
    const failing = { batch: () => Promise.reject(new Error('not asked')) }
    expect(await kept.hasRoom(failing, 1)).toBe(true)
    now += 10_000
    await expect(kept.hasRoom(failing, 1)).rejects.toThrow('not asked')
  })
})
