/**
 * Requests that came with an `Idempotency-Key`, and their encrypted answers. Every column is explained in docs/storage.md.
 * `answer` is the last column, so that SQLite reads the others without it.
 */

const SAFE = 'BETWEEN 0 AND 9007199254740991'

const IDEMPOTENT_REQUESTS = `CREATE TABLE IF NOT EXISTS idempotent_requests (
  customer_id TEXT NOT NULL,
  name TEXT NOT NULL,
  request_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)),
  bytes BIGINT NOT NULL DEFAULT 0 CHECK (bytes ${SAFE}),
  held_until BIGINT NOT NULL CHECK (held_until ${SAFE}),
  fenced_until BIGINT NOT NULL DEFAULT 0 CHECK (fenced_until ${SAFE}),
  sweep_at BIGINT NOT NULL CHECK (sweep_at ${SAFE}),
  answer TEXT,
  PRIMARY KEY (customer_id, name)
)`

const INDEXES = [
  'idempotent_requests_request ON idempotent_requests (request_id)',
  'idempotent_requests_sweep ON idempotent_requests (sweep_at)',
  'idempotent_requests_kept ON idempotent_requests (customer_id, held_until, name, bytes) WHERE bytes > 0',
  'idempotent_requests_size ON idempotent_requests (held_until, bytes) WHERE bytes > 0',
].map((index) => `CREATE INDEX IF NOT EXISTS ${index}`)

export const statements: readonly string[] = [IDEMPOTENT_REQUESTS, ...INDEXES]
