import { z } from 'zod'
import type { Database, Row } from '../storage/database.ts'
import { numberOf, textOf } from '../storage/row.ts'
import { int64, sql } from '../storage/sql.ts'
import { closeClaim } from './claims.ts'
import { commitSettlement, type Settlement } from './ledger.ts'

/**
 * Settlements that the storage refuses are stored here unchanged, so that the operator can inspect them and settle
 * them once the cause is fixed. They hold counts, amounts and names, never prompts or completions.
 */
export interface QuarantinedSettlement {
  readonly requestId: string
  readonly customerId: string
  readonly createdAtMs: number
  readonly settlement: Settlement
}

const settlementSchema = z.object({
  requestId: z.string(),
  admission: z.object({ customerId: z.string(), keyPrefix: z.string() }),
  row: z.object({
    model: z.string(),
    modality: z.enum(['chat', 'transcription', 'embedding']),
    provider: z.string(),
    region: z.string().nullable(),
    audioSeconds: z.number().nullable(),
    promptTokens: z.number(),
    completionTokens: z.number(),
    cost: z.object({
      nano: z.string().transform(BigInt),
      billingUnit: z.enum(['token', 'audio_minute', 'audio_second', 'request']),
      discountPct: z.number(),
      usdEur: z.string().nullable(),
    }),
    usageCapped: z.boolean(),
    failover: z.boolean(),
    createdAtMs: z.number(),
  }),
})

/**
 * Stores a settlement without its receipt. Idempotent. Closes its claim, so that a repeat is not carried out: the request is
 * billed later.
 * @throws StorageUnavailable when it could not be stored
 */
export async function quarantine(db: Database, settlement: Settlement, now: number): Promise<void> {
  const { requestId, admission } = settlement
  const { customerId, claim } = admission
  await db.batch([
    sql`INSERT INTO quarantined_settlements (request_id, customer_id, settlement, created_at)
      VALUES (${requestId}, ${customerId}, ${settlementText(settlement)}, ${int64(now)})
      ON CONFLICT (request_id) DO NOTHING`,
    ...(claim === undefined ? [] : [closeClaim({ claim, requestId, customerId, now })]),
  ])
}

function settlementText({ requestId, admission, row }: Settlement): string {
  const { customerId, keyPrefix } = admission
  const kept = { requestId, admission: { customerId, keyPrefix }, row }
  return JSON.stringify(kept, (_name, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
}

/** The quarantined settlements of a customer in the form kept after the erasure: under the ledger's id and without keys. */
export async function withoutCustomer(
  db: Database,
  customerId: string,
  ledgerId: string,
): Promise<readonly { readonly requestId: string; readonly settlement: string }[]> {
  const [rows = []] = await db.batch([
    sql`SELECT request_id, customer_id, settlement, created_at FROM quarantined_settlements
      WHERE customer_id = ${customerId}`,
  ])
  return rows.map(readRow).map(({ requestId, settlement }) => {
    const admission = { customerId: ledgerId, keyPrefix: '', claim: undefined }
    return { requestId, settlement: settlementText({ ...settlement, admission }) }
  })
}

/** The oldest quarantined settlements. */
export async function listQuarantined(
  directory: Database,
  limit: number,
): Promise<readonly QuarantinedSettlement[]> {
  const [rows = []] = await directory.batch([
    sql`SELECT request_id, customer_id, settlement, created_at FROM quarantined_settlements
      ORDER BY created_at, request_id LIMIT ${limit}`,
  ])
  return rows.map(readRow)
}

/**
 * Settles a quarantined settlement and removes it. Its usage row is dated `now` (ms): an earlier date would move the
 * spending of its key back into an earlier period, and change totals of days that are over.
 * @returns whether there was one
 * @throws StatementRefused when the storage still refuses it; it then stays quarantined
 * @throws StorageUnavailable when the storage does not answer
 */
export async function settleQuarantined(
  storage: { readonly directory: Database; readonly customer: (id: string) => Database },
  requestId: string,
  now: number,
): Promise<boolean> {
  const [rows = []] = await storage.directory.batch([
    sql`SELECT request_id, customer_id, settlement, created_at FROM quarantined_settlements
      WHERE request_id = ${requestId}`,
  ])
  const [kept] = rows
  if (kept === undefined) return false
  const { customerId, settlement } = readRow(kept)
  const row = { ...settlement.row, createdAtMs: now }
  await commitSettlement(storage.customer(customerId), { ...settlement, row })
  await storage.directory.batch([
    sql`DELETE FROM quarantined_settlements WHERE request_id = ${requestId}`,
  ])
  return true
}

function readRow(row: Row): QuarantinedSettlement {
  const settlement = settlementSchema.parse(JSON.parse(textOf(row, 'settlement')))
  return {
    requestId: textOf(row, 'request_id'),
    customerId: textOf(row, 'customer_id'),
    createdAtMs: numberOf(row, 'created_at'),
    settlement: { ...settlement, receipt: null },
  }
}
