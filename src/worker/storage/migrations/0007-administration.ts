/**
 * Suspension and erasure of customers, former secrets of rotated keys, admin tokens and the audit log. Every column is
 * explained in docs/storage.md.
 */

const SAFE = 'BETWEEN 0 AND 9007199254740991'
const UNSIGNED = 'BETWEEN 0 AND 9000000000000000000'

const CUSTOMER_COLUMNS = [
  `suspended_at BIGINT CHECK (suspended_at ${SAFE})`,
  `erased_at BIGINT CHECK (erased_at ${SAFE})`,
  `erased_keys BIGINT NOT NULL DEFAULT 0 CHECK (erased_keys ${SAFE})`,
  `alert_balance_nano BIGINT CHECK (alert_balance_nano ${UNSIGNED})`,
  'alert_key_limit_pct INTEGER CHECK (alert_key_limit_pct BETWEEN 1 AND 100)',
]

const ERASURES = `CREATE TABLE IF NOT EXISTS erasures (
  customer_id TEXT PRIMARY KEY,
  ledger_id TEXT NOT NULL,
  next_at BIGINT NOT NULL CHECK (next_at ${SAFE})
)`

const ROTATED_KEYS = `CREATE TABLE IF NOT EXISTS rotated_keys (
  customer_id TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  ends_at BIGINT NOT NULL CHECK (ends_at ${SAFE}),
  PRIMARY KEY (customer_id, key_prefix, key_hash)
)`

const ADMIN_TOKENS = `CREATE TABLE IF NOT EXISTS admin_tokens (
  token_id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL,
  name TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('read', 'customers', 'all')),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  expires_at BIGINT CHECK (expires_at ${SAFE}),
  revoked_at BIGINT CHECK (revoked_at ${SAFE})
)`

/** No statement of this program updates or deletes rows of these two tables. */
const AUDIT_LOG = `CREATE TABLE IF NOT EXISTS audit_log (
  id TEXT PRIMARY KEY,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  token_id TEXT,
  token_name TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT,
  changes TEXT NOT NULL
)`

const AUDIT_OUTCOMES = `CREATE TABLE IF NOT EXISTS audit_outcomes (
  id TEXT PRIMARY KEY,
  status INTEGER NOT NULL,
  created TEXT
)`

export const statements: readonly string[] = [
  ...CUSTOMER_COLUMNS.map((column) => `ALTER TABLE customers ADD COLUMN ${column}`),
  `ALTER TABLE api_keys ADD COLUMN rotated_at BIGINT CHECK (rotated_at ${SAFE})`,
  ERASURES,
  ROTATED_KEYS,
  ADMIN_TOKENS,
  AUDIT_LOG,
  AUDIT_OUTCOMES,
  'CREATE INDEX IF NOT EXISTS audit_log_time ON audit_log (created_at, id)',
]
