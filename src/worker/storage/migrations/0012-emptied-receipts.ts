/**
 * The number of the last ledger row whose receipt is emptied, of a customer that is being erased. Explained in
 * docs/storage.md.
 */
export const statements: readonly string[] = [
  `ALTER TABLE erasures ADD COLUMN emptied_through BIGINT NOT NULL DEFAULT 0
    CHECK (emptied_through BETWEEN 0 AND 9007199254740991)`,
]
