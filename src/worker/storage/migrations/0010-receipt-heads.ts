/** The beginning that receipts of the same two hops have in common, stored once. Explained in docs/storage.md. */
export const statements: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS receipt_heads (
    sha256 TEXT PRIMARY KEY,
    head TEXT NOT NULL,
    expires_at BIGINT NOT NULL CHECK (expires_at BETWEEN 0 AND 9007199254740991)
  )`,
  'CREATE INDEX IF NOT EXISTS receipt_heads_expiry ON receipt_heads (expires_at)',
]
