/**
 * Limits of a single key. Every column is explained in docs/storage.md. Past spending of keys is computed from the
 * ledger once; from then on each settlement adds to it.
 */

const SAFE = 'BETWEEN 0 AND 9007199254740991'
const UNSIGNED = 'BETWEEN 0 AND 9000000000000000000'

const COLUMNS = [
  `expires_at BIGINT CHECK (expires_at ${SAFE})`,
  'models TEXT',
  `requests_per_minute BIGINT CHECK (requests_per_minute ${SAFE})`,
  `tokens_per_minute BIGINT CHECK (tokens_per_minute ${SAFE})`,
  `concurrent_requests BIGINT CHECK (concurrent_requests ${SAFE})`,
  `limit_nano BIGINT CHECK (limit_nano ${UNSIGNED})`,
  `limit_reset TEXT NOT NULL DEFAULT 'none'
    CHECK (limit_reset IN ('none', 'daily', 'weekly', 'monthly'))`,
  `spent_nano BIGINT NOT NULL DEFAULT 0 CHECK (spent_nano ${UNSIGNED})`,
  `spent_at BIGINT NOT NULL DEFAULT 0 CHECK (spent_at ${SAFE})`,
  `window_tokens BIGINT NOT NULL DEFAULT 0 CHECK (window_tokens ${SAFE})`,
]

const SPENT_SO_FAR = `UPDATE api_keys SET
  spent_nano = CAST((SELECT COALESCE(SUM(cost_nano), 0) FROM usage
    WHERE usage.customer_id = api_keys.customer_id
      AND usage.key_prefix = api_keys.key_prefix) AS BIGINT)`

export const statements: readonly string[] = [
  ...COLUMNS.map((column) => `ALTER TABLE api_keys ADD COLUMN ${column}`),
  SPENT_SO_FAR,
]
