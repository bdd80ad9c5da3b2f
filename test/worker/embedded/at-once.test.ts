import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { findKey } from '../../../src/worker/auth/authenticate.ts'
import {
  commitSettlement,
  releaseReservation,
  storeEvidence,
} from '../../../src/worker/settle/ledger.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { ledgerBehind, type LedgerCall } from '../../../src/worker/storage/ledger-calls.ts'
import { LocalLedger } from '../../../src/worker/storage/local-ledger.ts'
import type { SyncStore } from '../../../src/worker/storage/sync-store.ts'
import {
  addCustomer,
  askOf,
  deleteKey,
  NOW,
  readLedgerTotals,
  settlementOf,
} from '../../support/ledger.ts'
import { openEmbedded, type EmbeddedDatabase } from '../../support/sqlite-store.ts'

/** A store whose transactions take some turns of the event loop, and may be told to fail. */
function slowStore(turns: number, fails: () => boolean = () => false) {
  return (store: SyncStore): SyncStore => ({
    ...store,
    transact: async (work) => {
      for (let turn = 0; turn < turns; turn += 1) await turnOfEventLoop()
      const result = await store.transact(() => {
        const done = work()
        if (fails()) throw new Error('disk I/O error: SQLITE_IOERR')
        return done
      })
      for (let turn = 0; turn < turns; turn += 1) await turnOfEventLoop()
      return result
    },
  })
}

const turnOfEventLoop = () =>
  new Promise<void>((resolve) => {
    setImmediate(resolve)
  })

function admissionOf(key: PresentedKey, requestId: string, nano = 10n): LedgerCall {
  const reserveNano = { '0': nano.toString() }
  return { kind: 'admit', entry: { ...askOf(key, requestId), reserveNano, claim: null } }
}

/** The database of requests in the object's own isolate: operations that memory alone decides are carried out at once. */
function localTo({ ledgerEngine }: EmbeddedDatabase): Database {
  const ledger = ledgerBehind(async (call) => {
    const known = ledgerEngine.atOnce(call)
    const [outcome] = known ? [known] : await ledgerEngine.operations([call])
    if (outcome === undefined) throw new Error('an operation was left unanswered')
    return outcome
  })
  return { batch: (statements) => ledgerEngine.database.batch(statements), ledger }
}

test('an operation at once needs an account in memory and a fold that is due', async () => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { balance: 100n })
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'first'))).toBeUndefined()
  await db.ledgerEngine.operations([admissionOf(key, 'first')])
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'second'))).toMatchObject({
    facts: { admitted: true },
  })
  expect(
    db.ledgerEngine.atOnce(admissionOf({ ...key, keyPrefix: 'cmr_acme_other' }, 'third')),
  ).toBeUndefined()
  await db.passTime()
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'fourth'))).toBeUndefined()
  expect(await readLedgerTotals(db)).toMatchObject({ reserved: 20n })
})

test('nothing is carried out at once while a settlement or a fold is under way', async () => {
  const db = await openEmbedded(':memory:', slowStore(2))
  const key = await addCustomer(db, { balance: 30n })
  await db.ledgerEngine.operations([admissionOf(key, 'first'), admissionOf(key, 'second')])
  const settling = commitSettlement(db, settlementOf(key, 'first', { nano: 1n }))
  await turnOfEventLoop()
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'third'))).toBeUndefined()
  await settling
  const folding = db.passTime()
  await turnOfEventLoop()
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'third'))).toBeUndefined()
  await folding
  expect(await readLedgerTotals(db)).toMatchObject({ reserved: 10n, balance: 29n })
})

test('nothing is carried out at once after a write has failed', async () => {
  let broken = false
  const db = await openEmbedded(
    ':memory:',
    slowStore(0, () => broken),
  )
  const key = await addCustomer(db, { balance: 100n })
  await db.ledgerEngine.operations([admissionOf(key, 'first')])
  broken = true
  await expect(db.passTime()).resolves.toBeUndefined()
  await db.ledgerEngine.operations([])
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'second'))).toBeUndefined()
  expect(db.ledgerEngine.atOnce({ kind: 'release', requestId: 'first' })).toBeUndefined()
})

test('what is reserved at once and not settled is in the tables after a fold, and given back by a release', async () => {
  const db = await openEmbedded()
  const key = await addCustomer(db, { balance: 100n })
  await db.ledgerEngine.operations([admissionOf(key, 'first')])
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'second'))).toMatchObject({ ok: true })
  expect(db.ledgerEngine.atOnce({ kind: 'release', requestId: 'first' })).toEqual({
    ok: true,
    kind: 'release',
    released: true,
  })
  expect(await readLedgerTotals(db)).toMatchObject({ reserved: 10n })
})

test('requests that come at once and by call admit together exactly what the balance and the key allow', async () => {
  const acts = fc.array(
    fc.record({
      waits: fc.nat(6),
      called: fc.boolean(),
      ends: fc.constantFrom('settled', 'released', 'open'),
    }),
    { minLength: 20, maxLength: 60 },
  )
  await fc.assert(
    fc.asyncProperty(acts, fc.nat(3), async (requests, turns) => {
      const embedded = await openEmbedded(':memory:', slowStore(turns))
      const key = await addCustomer(embedded, { balance: 100n })
      const local = localTo(embedded)
      const plans = { standard: { discount_pct: 0, concurrent_requests: 4 } }
      let open = 0
      let most = 0
      let spent = 0n
      const run = async ({ waits, called, ends }: (typeof requests)[number], index: number) => {
        for (let turn = 0; turn < waits; turn += 1) await turnOfEventLoop()
        const id = `request-${index}`
        const way = called ? embedded : local
        const admitted = await admit(way, askOf(key, id, { nano: 10n, plans })).then(
          () => true,
          () => false,
        )
        if (!admitted) return
        open += 1
        most = Math.max(most, open)
        await turnOfEventLoop()
        if (ends === 'open') return
        open -= 1
        if (ends === 'released') await releaseReservation(way, id)
        else {
          spent += 10n
          await commitSettlement(way, settlementOf(key, id, { nano: 10n }))
        }
      }
      await Promise.all([...requests.map(run), turnOfEventLoop().then(() => embedded.passTime())])
      expect(most).toBeLessThanOrEqual(4)
      const reserved = BigInt(open) * 10n
      expect(await readLedgerTotals(embedded)).toMatchObject({ balance: 100n - spent, reserved })
      expect(spent + reserved).toBeLessThanOrEqual(100n)
      embedded.connection.close()
    }),
    { numRuns: 60 },
  )
}, 120_000)

test('a ledger that takes the place of another holds what that one held, but nothing that is settled or stored', async () => {
  const former = await openEmbedded()
  const key = await addCustomer(former, { balance: 40n })
  await admit(former, askOf(key, 'stored', { nano: 10n }))
  await former.passTime()
  await admit(former, askOf(key, 'settled', { nano: 10n }))
  await commitSettlement(former, settlementOf(key, 'settled', { nano: 10n }))
  await admit(former, askOf(key, 'open', { nano: 10n }))

  const after = await openEmbedded(
    ':memory:',
    () => former.store,
    false,
    former.ledgerEngine.held(),
  )
  expect(await readLedgerTotals(after)).toMatchObject({ balance: 30n, reserved: 20n })
  await expect(admit(after, askOf(key, 'too many', { nano: 20n }))).rejects.toMatchObject({
    code: 'insufficient_balance',
  })
  await commitSettlement(after, settlementOf(key, 'open', { nano: 7n }))
  expect(await readLedgerTotals(after)).toMatchObject({ balance: 23n, reserved: 10n })
})

test("a ledger that takes the place of another counts the requests of the last second in their key's minute, each once", async () => {
  const plans = { standard: { discount_pct: 0, requests_per_minute: 5 } }
  const former = await openEmbedded()
  const key = await addCustomer(former, { billing: 'postpaid' })
  const ask = (db: Database, requestId: string) => admit(db, { ...askOf(key, requestId), plans })
  const settle = (requestId: string) =>
    commitSettlement(former, settlementOf(key, requestId, { nano: 1n }))
  await ask(former, 'stored and settled')
  await ask(former, 'stored and open')
  await former.passTime()
  await settle('stored and settled')
  await ask(former, 'settled')
  await settle('settled')
  await ask(former, 'open')

  const after = await openEmbedded(
    ':memory:',
    () => former.store,
    false,
    former.ledgerEngine.held(),
  )
  await ask(after, 'the fifth')
  await expect(ask(after, 'the sixth')).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
})

test('an object that gets a new instance offers nothing until that is open, and its reservations are kept until then', async () => {
  const local = new LocalLedger()
  const first = await openEmbedded()
  const key = await addCustomer(first, { balance: 100n })
  expect(local.replace('object')).toEqual([])
  local.offer('object', first.ledgerEngine)
  await admit(first, askOf(key, 'known', { nano: 10n }))
  expect(local.atOnce('other', admissionOf(key, 'x'))).toBeUndefined()
  expect(local.atOnce('object', admissionOf(key, 'late'))).toMatchObject({ ok: true })

  const held = [
    { requestId: 'known', amount: 10n },
    { requestId: 'late', amount: 10n },
  ]
  expect(local.replace('object')).toMatchObject(held)
  expect(local.atOnce('object', admissionOf(key, 'later'))).toBeUndefined()
  // The next instance could not be opened either.
  expect(local.replace('object')).toMatchObject(held)
})

test('a key that was found is admitted at once, and found at once even while a fold is under way', async () => {
  const db = await openEmbedded(':memory:', slowStore(2))
  const first = await addCustomer(db, { id: 'first', balance: 100n })
  const second = await addCustomer(db, { id: 'second', balance: 100n })
  await db.ledgerEngine.operations([admissionOf(first, 'r1')])
  const find = (key: PresentedKey): LedgerCall => ({ kind: 'find', key })
  expect(db.ledgerEngine.atOnce(find(second))).toBeUndefined()
  expect(await findKey(localTo(db), second)).toMatchObject({ keyName: 'name of k1' })
  expect(db.ledgerEngine.atOnce(admissionOf(second, 'r2'))).toMatchObject({ ok: true })
  const folding = db.passTime()
  await turnOfEventLoop()
  expect(db.ledgerEngine.atOnce(find(second))).toMatchObject({ ok: true })
  await folding
  await deleteKey(db, second)
  expect(db.ledgerEngine.atOnce(find(second))).toBeUndefined()
  expect(await findKey(localTo(db), second)).toBeUndefined()
})

test('keys are found after a write has failed, too', async () => {
  let broken = false
  const db = await openEmbedded(
    ':memory:',
    slowStore(0, () => broken),
  )
  const first = await addCustomer(db, { id: 'first', balance: 100n })
  const second = await addCustomer(db, { id: 'second', balance: 100n })
  await db.ledgerEngine.operations([admissionOf(first, 'r1')])
  broken = true
  await db.passTime()
  for (const key of [first, second]) {
    expect(await findKey(localTo(db), key)).toMatchObject({ secretEndsAt: null })
  }
})

test('evidence that cannot be stored is reported, stops admission by memory alone, and can be stored later', async () => {
  let broken = false
  const db = await openEmbedded(
    ':memory:',
    slowStore(0, () => broken),
  )
  const key = await addCustomer(db, { balance: 100n })
  await db.ledgerEngine.operations([admissionOf(key, 'r1')])
  const evidence = { customerId: 'acme', sha256: 'e', dataB64: 'ZQ==', expiresAtMs: NOW }
  broken = true
  const failure = storeEvidence(localTo(db), evidence)
  await expect(failure).rejects.toThrow(new StorageUnavailable('disk I/O error: SQLITE_IOERR'))
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'r2'))).toBeUndefined()
  broken = false
  await storeEvidence(localTo(db), evidence)
  expect(db.connection.prepare('SELECT sha256 FROM evidence').all()).toEqual([{ sha256: 'e' }])
  await db.passTime()
  await db.ledgerEngine.operations([admissionOf(key, 'r2')])
  expect(db.ledgerEngine.atOnce(admissionOf(key, 'r3'))).toMatchObject({ ok: true })
})
