import { receiptsTable } from './0001-ledger.ts'

/**
 * Receipt ids begin with the time (`storage/clustered-ids.ts`). With the id first in the primary key, rows written at the
 * same time are neighbours; with the customer first, each would be on another page. Runs before the first migration of the
 * schema, which then finds the table. A database of an earlier release keeps its key: recreating the table would leave the
 * bytes of the old one, including erased receipts, where nothing overwrites them.
 */
export const statements: readonly string[] = [receiptsTable('receipt_id, customer_id')]
