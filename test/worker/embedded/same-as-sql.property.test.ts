import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PresentedKey } from '../../../src/worker/auth/api-key.ts'
import { changeCustomer } from '../../../src/worker/admin/customers.ts'
import { updateKey } from '../../../src/worker/admin/keys.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import {
  commitSettlement,
  releaseReservation,
  storeEvidence,
} from '../../../src/worker/settle/ledger.ts'
import { sweep } from '../../../src/worker/settle/sweep.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import {
  addCustomer,
  addKey,
  askOf,
  readLedgerTotals,
  receiptOf,
  settlementOf,
  type Plans,
} from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'
import { openEmbedded } from '../../support/sqlite-store.ts'

const PLANS: Plans = {
  standard: { discount_pct: 0, requests_per_minute: 4, concurrent_requests: 3 },
  gold: { discount_pct: 20 },
}

const CLAIM = {
  name: 'c'.repeat(64),
  fingerprint: 'f'.repeat(64),
  lifetimeMs: 1_000,
  customerBytes: 10,
}

/** So that some bills of a history are dated before the border of a period, and some behind it. */
const BEGIN = Date.parse('2026-11-20T23:58:20.000Z')

type Act = 'admit' | 'settle' | 'release' | 'sweep' | 'limit' | 'suspend' | 'evidence' | 'fold'

interface Step {
  readonly act: Act
  readonly request: number
  readonly nano: bigint
  readonly second: number
  readonly receipt: boolean
  readonly claimed: boolean
  readonly limit: bigint | null
}

const STEP: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom<Act[]>(
    ...(['admit', 'admit', 'admit', 'settle', 'settle', 'settle', 'release'] as const),
    ...(['sweep', 'limit', 'suspend', 'evidence', 'fold'] as const),
  ),
  request: fc.nat(9),
  nano: fc.oneof(fc.bigInt(0n, 60n), fc.bigInt(0n, 9n * 10n ** 18n)),
  second: fc.nat(200),
  receipt: fc.boolean(),
  claimed: fc.nat(9).map((number) => number === 0),
  limit: fc.option(fc.bigInt(0n, 100n)),
})

const PLAIN: Step = {
  act: 'admit',
  request: 3,
  nano: 1n,
  second: 0,
  receipt: false,
  claimed: false,
  limit: null,
}

/** A request that comes again after a reservation of it that the table has was ended in memory. */
const AGAIN: readonly Step[] = [{ ...PLAIN, claimed: true }, { ...PLAIN, act: 'settle' }, PLAIN]
const AGAIN_AFTER_FOLD: readonly Step[] = [
  PLAIN,
  { ...PLAIN, act: 'fold' },
  { ...PLAIN, act: 'settle' },
  PLAIN,
]

async function perform(
  db: Database,
  keys: readonly PresentedKey[],
  step: Step,
  fold: () => Promise<void>,
): Promise<unknown> {
  const id = `request-${step.request}`
  const key = keys[step.request % 4]
  if (key === undefined) throw new Error('there are four keys')
  const now = BEGIN + step.second * 1000
  const claim = step.claimed ? { claim: CLAIM } : {}
  const expiresAt = now + 30_000
  const evidence = { sha256: 'e'.repeat(64), dataB64: 'AAAA', expiresAtMs: now }
  const acts: Readonly<Record<Act, () => Promise<unknown>>> = {
    admit: () =>
      admit(db, askOf(key, id, { nano: step.nano, now, expiresAt, plans: PLANS, ...claim })),
    release: () => releaseReservation(db, id),
    sweep: () => sweep(db, now),
    limit: () =>
      updateKey(
        db,
        key.customerId,
        key.keyPrefix,
        {
          limit_eur: step.limit,
          limit_reset: 'daily',
          tokens_per_minute: step.receipt ? 20 : null,
        },
        now,
      ),
    suspend: () => changeCustomer(db, key.customerId, { suspended: step.receipt }, now),
    evidence: () => storeEvidence(db, { customerId: key.customerId, ...evidence }),
    fold,
    settle: () => {
      const evidenceRefs = step.claimed ? [] : [evidence.sha256]
      const receipt = step.receipt
        ? receiptOf(`receipt of ${id}`, { evidenceRefs, expiresAtMs: now + 50_000 })
        : null
      const row = { nano: step.nano, createdAtMs: now, receipt, ...claim }
      return commitSettlement(db, {
        ...settlementOf(key, id, row),
        alerts: { balanceBelowNano: 40n },
      })
    },
  }
  return acts[step.act]()
}

/** How it ended, as a client could tell: refusals by SQL by their kind alone. */
async function endOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ApiError) return [error.code, error.message, error.details]
    return 'refused'
  }
}

const money = (...columns: string[]) =>
  columns.map((column) => `CAST(${column} AS TEXT) AS ${column}`).join(', ')

const DUMP = [
  `SELECT customer_id, ${money('balance_nano', 'reserved_nano')}, usage_count, last_usage_at,
    suspended_at FROM customers ORDER BY 1`,
  `SELECT key_prefix, ${money('spent_nano', 'limit_nano')}, spent_at, window_started_at,
    window_requests, window_tokens FROM api_keys ORDER BY 1`,
  `SELECT request_id, customer_id, key_prefix, ${money('amount_nano')}, created_at, expires_at
    FROM reservations ORDER BY 1`,
  `SELECT id, customer_id, seq, created_at, key_prefix, model, modality, provider, region,
    billing_unit, audio_seconds, prompt_tokens, completion_tokens, ${money('cost_nano')},
    discount_pct, usd_eur, receipt_id, failover, capped FROM usage ORDER BY 1`,
  'SELECT * FROM receipts ORDER BY customer_id, receipt_id',
  'SELECT * FROM evidence ORDER BY customer_id, sha256',
  'SELECT * FROM idempotent_requests ORDER BY customer_id, name',
  `SELECT id, type, customer_id, subject, ${money('amount_nano', 'limit_nano')}, created_at, queued
    FROM webhook_events ORDER BY id`,
]

const dump = (db: Database) => db.batch(DUMP.map((text) => ({ sql: text, params: [] })))

async function fourKeys(db: Database): Promise<readonly PresentedKey[]> {
  return [
    await addCustomer(db, { id: 'acme', balance: 200n }),
    await addKey(db, 'acme', 'k2'),
    await addCustomer(db, { id: 'beta', billing: 'postpaid', plan: 'gold' }),
    await addKey(db, 'beta', 'k2'),
  ]
}

describe.each([
  ['operations', false],
  ['operations, of which those that need nothing else are carried out at once', true],
])('accounts in memory, by %s,', (_, atOnce) => {
  test('decide and write exactly what the SQL of all engines does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { maxLength: 40 }), async (history) => {
        const bySql = openSqlite()
        const embedded = await openEmbedded(':memory:', (store) => store, atOnce)
        const keys = await fourKeys(bySql)
        await fourKeys(embedded)
        for (const step of history) {
          const expected = await endOf(perform(bySql, keys, step, async () => {}))
          expect(await endOf(perform(embedded, keys, step, () => embedded.passTime()))).toEqual(
            expected,
          )
        }
        expect(await dump(embedded)).toEqual(await dump(bySql))
        for (const id of ['acme', 'beta']) await readLedgerTotals(embedded, id)
        bySql.connection.close()
        embedded.connection.close()
      }),
      { numRuns: 50, examples: [[[...AGAIN]], [[...AGAIN_AFTER_FOLD]]] },
    )
  }, 120_000)
})
