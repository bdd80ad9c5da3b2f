import { receiptsTable } from './0001-ledger.ts'

/**
 * Ids of receipts begin with the time (`storage/clustered-ids.ts`), so in a key that begins with them all that is written at the
 * same time is together; in one that begins with the customer it is a page for each. Runs before the first schema, which then
 * finds the table: a database of an earlier release keeps its key, because a table that is made anew leaves the bytes of the former
 * one, erased receipts as well, where nothing overwrites them.
 */
export const statements: readonly string[] = [receiptsTable('receipt_id, customer_id')]
