/**
 * Events for the operator's endpoints, and the state of their delivery. Every column is explained in docs/storage.md.
 */

const SAFE = 'BETWEEN 0 AND 9007199254740991'

const EVENTS = `CREATE TABLE IF NOT EXISTS webhook_events (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  customer_id TEXT,
  subject TEXT NOT NULL,
  amount_nano BIGINT,
  limit_nano BIGINT,
  created_at BIGINT NOT NULL CHECK (created_at ${SAFE}),
  queued INTEGER NOT NULL DEFAULT 0 CHECK (queued IN (0, 1))
)`

const DELIVERIES = `CREATE TABLE IF NOT EXISTS webhook_deliveries (
  event_id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at BIGINT NOT NULL CHECK (next_at ${SAFE}),
  last_result TEXT,
  updated_at BIGINT NOT NULL CHECK (updated_at ${SAFE}),
  PRIMARY KEY (event_id, endpoint)
)`

const STATES = `CREATE TABLE IF NOT EXISTS webhook_states (
  subject TEXT PRIMARY KEY,
  bad INTEGER NOT NULL CHECK (bad IN (0, 1)),
  run_id TEXT NOT NULL,
  changed_at BIGINT NOT NULL CHECK (changed_at ${SAFE})
)`

export const statements: readonly string[] = [
  EVENTS,
  DELIVERIES,
  STATES,
  'CREATE INDEX IF NOT EXISTS webhook_events_new ON webhook_events (created_at) WHERE queued = 0',
  'CREATE INDEX IF NOT EXISTS webhook_events_time ON webhook_events (created_at)',
  `CREATE INDEX IF NOT EXISTS webhook_deliveries_due ON webhook_deliveries (next_at) WHERE state = 'pending'`,
]
