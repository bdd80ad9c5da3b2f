/**
 * The first schema. Every column is explained in docs/storage.md.
 *
 * One text for SQLite and PostgreSQL. Money is nano-EUR in BIGINT; its range CHECKs stop SQLite from turning
 * an overflow into a float. Times are milliseconds since the epoch. Flags are INTEGER 0 or 1.
 */

const MONEY = 'BETWEEN -9000000000000000000 AND 9000000000000000000'
const UNSIGNED = 'BETWEEN 0 AND 9000000000000000000'
const SAFE = 'BETWEEN 0 AND 9007199254740991'

const CUSTOMERS = `CREATE TABLE IF NOT EXISTS customers (
  customer_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  plan TEXT NOT NULL DEFAULT 'standard',
  billing TEXT NOT NULL CHECK (billing IN ('prepaid', 'postpaid')),
  balance_nano BIGINT NOT NULL DEFAULT 0 CHECK (balance_nano ${MONEY}),
  reserved_nano BIGINT NOT NULL DEFAULT 0 CHECK (reserved_nano ${UNSIGNED}),
  receipt_retention_days INTEGER CHECK (receipt_retention_days BETWEEN 1 AND 3650),
  usage_count BIGINT NOT NULL DEFAULT 0 CHECK (usage_count ${SAFE}),
  last_usage_at BIGINT NOT NULL DEFAULT 0 CHECK (last_usage_at ${SAFE}),
  turn TEXT NOT NULL DEFAULT '',
  turn_nano BIGINT NOT NULL DEFAULT 0 CHECK (turn_nano ${UNSIGNED}),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE})
)`

const API_KEYS = `CREATE TABLE IF NOT EXISTS api_keys (
  customer_id TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  name TEXT NOT NULL,
  window_started_at BIGINT NOT NULL DEFAULT 0 CHECK (window_started_at ${SAFE}),
  window_requests BIGINT NOT NULL DEFAULT 0 CHECK (window_requests ${SAFE}),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  deleted_at BIGINT CHECK (deleted_at ${SAFE}),
  PRIMARY KEY (customer_id, key_prefix)
)`

const CREDITS = `CREATE TABLE IF NOT EXISTS credits (
  customer_id TEXT NOT NULL,
  reference TEXT NOT NULL,
  amount_nano BIGINT NOT NULL CHECK (amount_nano ${MONEY}),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  PRIMARY KEY (customer_id, reference)
)`

/** Open reservations only: closing one deletes its row. */
const RESERVATIONS = `CREATE TABLE IF NOT EXISTS reservations (
  request_id TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  amount_nano BIGINT NOT NULL CHECK (amount_nano ${UNSIGNED}),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  expires_at BIGINT NOT NULL CHECK (expires_at ${SAFE})
)`

const USAGE = `CREATE TABLE IF NOT EXISTS usage (
  id TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL,
  seq BIGINT NOT NULL CHECK (seq ${SAFE}),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  key_prefix TEXT NOT NULL,
  model TEXT NOT NULL,
  modality TEXT NOT NULL CHECK (modality IN ('chat', 'transcription', 'embedding')),
  provider TEXT NOT NULL,
  region TEXT,
  billing_unit TEXT NOT NULL
    CHECK (billing_unit IN ('token', 'audio_minute', 'audio_second', 'request')),
  audio_seconds DOUBLE PRECISION CHECK (audio_seconds >= 0),
  prompt_tokens BIGINT NOT NULL CHECK (prompt_tokens ${SAFE}),
  completion_tokens BIGINT NOT NULL CHECK (completion_tokens ${SAFE}),
  cost_nano BIGINT NOT NULL CHECK (cost_nano ${UNSIGNED}),
  discount_pct INTEGER NOT NULL CHECK (discount_pct BETWEEN 0 AND 100),
  usd_eur TEXT,
  receipt_id TEXT,
  failover INTEGER NOT NULL CHECK (failover IN (0, 1))
)`

/**
 * `body_state`: 0 stored, 1 overwritten, 2 cleared. SQLite stores the values 0 and 1 in no bytes at all, so the overwritten
 * row has exactly the length of the stored one and replaces it in place.
 * @param key the columns of its primary key
 */
export const receiptsTable = (key: string): string => `CREATE TABLE IF NOT EXISTS receipts (
  customer_id TEXT NOT NULL,
  receipt_id TEXT NOT NULL,
  jws TEXT,
  body_state INTEGER NOT NULL DEFAULT 0 CHECK (body_state IN (0, 1, 2)),
  sha256 TEXT NOT NULL,
  kid TEXT NOT NULL,
  evidence_refs TEXT NOT NULL DEFAULT '[]',
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  prompt_tokens BIGINT NOT NULL CHECK (prompt_tokens ${SAFE}),
  completion_tokens BIGINT NOT NULL CHECK (completion_tokens ${SAFE}),
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  expires_at BIGINT NOT NULL CHECK (expires_at ${SAFE}),
  PRIMARY KEY (${key})
)`

/** A piece of evidence is shared by all receipts of a customer that name it; it is kept as long as the last of them. */
const EVIDENCE = `CREATE TABLE IF NOT EXISTS evidence (
  customer_id TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  data_b64 TEXT NOT NULL,
  expires_at BIGINT NOT NULL CHECK (expires_at ${SAFE}),
  PRIMARY KEY (customer_id, sha256)
)`

/** Directory: belongs to no single customer. */
const DIRECTORY_CUSTOMERS = `CREATE TABLE IF NOT EXISTS directory_customers (
  customer_id TEXT PRIMARY KEY,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE})
)`

const SIGNING_KEYS = `CREATE TABLE IF NOT EXISTS signing_keys (
  kid TEXT NOT NULL,
  envelope_sha256 TEXT NOT NULL,
  jwk TEXT NOT NULL,
  envelope TEXT NOT NULL,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  seen_at BIGINT NOT NULL CHECK (seen_at ${SAFE}),
  PRIMARY KEY (kid, envelope_sha256)
)`

const SECRETS = `CREATE TABLE IF NOT EXISTS secrets (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE})
)`

const INDEXES = [
  'reservations_open ON reservations (customer_id, key_prefix, expires_at)',
  'reservations_expiry ON reservations (expires_at)',
  'usage_time ON usage (customer_id, created_at, seq)',
  'usage_model ON usage (customer_id, model, seq, key_prefix)',
  'usage_key ON usage (customer_id, key_prefix, seq)',
  // SQLite uses a partial index only where a query repeats its condition word for word.
  'receipts_stored ON receipts (expires_at) WHERE body_state = 0',
  'receipts_overwritten ON receipts (expires_at) WHERE body_state = 1',
  'evidence_expiry ON evidence (expires_at)',
  'signing_keys_seen ON signing_keys (seen_at)',
  'signing_keys_envelope ON signing_keys (envelope_sha256)',
].map((index) => `CREATE INDEX IF NOT EXISTS ${index}`)

/**
 * Two rows of no customer that make the table of receipts larger than one SQLite page from the beginning. When a table
 * outgrows its first page, SQLite copies that page and leaves the old bytes behind, where no later overwrite reaches them;
 * so the first page must never have held a receipt. All later rows are appended, and appended rows do not move.
 */
const FIRST_PAGE = ['first-page-1', 'first-page-2'].map(
  (id) => `INSERT INTO receipts (customer_id, receipt_id, jws, body_state, sha256, kid, model,
      provider, prompt_tokens, completion_tokens, created_at, expires_at)
    VALUES ('', '${id}', '${'0'.repeat(3000)}', 2, '', '', '', '', 0, 0, 0, 0)
    ON CONFLICT (customer_id, receipt_id) DO NOTHING`,
)

export const statements: readonly string[] = [
  CUSTOMERS,
  API_KEYS,
  CREDITS,
  RESERVATIONS,
  USAGE,
  receiptsTable('customer_id, receipt_id'),
  EVIDENCE,
  DIRECTORY_CUSTOMERS,
  SIGNING_KEYS,
  SECRETS,
  ...INDEXES,
  'CREATE UNIQUE INDEX IF NOT EXISTS usage_order ON usage (customer_id, seq)',
  ...FIRST_PAGE,
]
