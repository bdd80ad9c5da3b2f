/**
 * Renames the column of a customer's lock, marks rows whose usage was capped, and adds the quarantine for settlements
 * that the storage refuses. Every column is explained in docs/storage.md.
 */

const SAFE = 'BETWEEN 0 AND 9007199254740991'

/** `settlement` is JSON of counts, amounts and names: no prompts or answers. */
const QUARANTINED_SETTLEMENTS = `CREATE TABLE IF NOT EXISTS quarantined_settlements (
  request_id TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL,
  settlement TEXT NOT NULL,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE})
)`

export const statements: readonly string[] = [
  'ALTER TABLE customers RENAME COLUMN turn TO lock_request_id',
  'ALTER TABLE customers RENAME COLUMN turn_nano TO lock_reserve_nano',
  'ALTER TABLE usage ADD COLUMN capped INTEGER NOT NULL DEFAULT 0 CHECK (capped IN (0, 1))',
  QUARANTINED_SETTLEMENTS,
]
