import { textOf } from '../storage/row.ts'
import type { SettlementEntry } from '../storage/ledger-operations.ts'
import type { SyncStore } from '../storage/sync-store.ts'

/** What identifies a settlement and its receipt. */
export interface SettlementIds extends Pick<SettlementEntry, 'requestId' | 'customerId'> {
  readonly receipt: { readonly id: string } | null
}

/** Which of the given settlements are in the tables. */
export interface Settled {
  readonly requests: ReadonlySet<string>
  /** Their receipts, named by `receiptName`. */
  readonly receipts: ReadonlySet<string>
}

const FIND_USAGE = 'SELECT id FROM usage WHERE id IN (SELECT value FROM json_each(?))'

const FIND_RECEIPTS = `SELECT customer_id, receipt_id FROM receipts WHERE (customer_id, receipt_id) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))`

export function findSettled(
  store: Pick<SyncStore, 'run'>,
  entries: readonly SettlementIds[],
): Settled {
  if (entries.length === 0) return { requests: new Set(), receipts: new Set() }
  const ids = entries.map(({ requestId }) => requestId)
  const requests = store.run(FIND_USAGE, [JSON.stringify(ids)]).rows
  const named = entries.flatMap(({ customerId, receipt }) =>
    receipt === null ? [] : [[customerId, receipt.id]],
  )
  const receipts = named.length === 0 ? [] : store.run(FIND_RECEIPTS, [JSON.stringify(named)]).rows
  return {
    requests: new Set(requests.map((row) => textOf(row, 'id'))),
    receipts: new Set(
      receipts.map((row) => receiptName(textOf(row, 'customer_id'), textOf(row, 'receipt_id'))),
    ),
  }
}

export function receiptName(customerId: string, receiptId: string): string {
  return `${customerId} ${receiptId}`
}
