/** What the operator's console needs: counts over time, and sessions. Every column is explained in docs/storage.md. */

const SAFE = 'BETWEEN 0 AND 9007199254740991'
const UNSIGNED = 'BETWEEN 0 AND 9000000000000000000'

/** Each row covers the time of `width_seconds` seconds that begins at `starts_at`. */
const HISTORY = `CREATE TABLE IF NOT EXISTS history (
  width_seconds INTEGER NOT NULL,
  starts_at BIGINT NOT NULL CHECK (starts_at ${SAFE}),
  series TEXT NOT NULL,
  label TEXT NOT NULL,
  value BIGINT NOT NULL CHECK (value ${UNSIGNED}),
  expires_at BIGINT NOT NULL CHECK (expires_at ${SAFE}),
  PRIMARY KEY (width_seconds, starts_at, series, label)
)`

/**
 * Only the digest of a session's secret is stored; `boot_binding` is set where the session was begun with the boot token.
 */
const ADMIN_SESSIONS = `CREATE TABLE IF NOT EXISTS admin_sessions (
  session_hash TEXT PRIMARY KEY,
  token_id TEXT,
  boot_binding TEXT,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  expires_at BIGINT NOT NULL CHECK (expires_at ${SAFE})
)`

export const statements: readonly string[] = [
  HISTORY,
  ADMIN_SESSIONS,
  'CREATE INDEX IF NOT EXISTS history_expiry ON history (expires_at)',
  'CREATE INDEX IF NOT EXISTS admin_sessions_expiry ON admin_sessions (expires_at)',
]
