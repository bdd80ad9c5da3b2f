import { expect, it } from 'vitest'
import { creditCustomer } from '../../../src/worker/admin/customers.ts'
import { StatementRefused } from '../../../src/worker/storage/batch-outcome.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import { addCustomer, NOW, readLedgerTotals } from '../../support/ledger.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

const MOST = 9_000_000_000_000_000_000n

it('a credit for which another has just taken the room is refused as one that never had it', async () => {
  const db = openSqlite()
  const id = 'acme'
  await addCustomer(db, { id, balance: MOST - 10n })
  const credit = (on: Database, reference: string) =>
    creditCustomer(on, id, { amountNano: 10n, reference }, NOW)
  let calls = 0
  const batch: Database['batch'] = async (statements) => {
    calls += 1
    if (calls === 2) await credit(db, 'quicker')
    return db.batch(statements).catch((error: unknown) => {
      throw new StatementRefused('out of range', { cause: error })
    })
  }
  expect(await credit({ batch }, 'slower').catch(told)).toEqual({
    code: 'invalid_request_error',
    message:
      'With this credit the balance would be more than 9000000000 EUR, the most that it may be.',
    param: 'amount_eur',
  })
  expect(await readLedgerTotals(db, id)).toMatchObject({ balance: MOST })
})
