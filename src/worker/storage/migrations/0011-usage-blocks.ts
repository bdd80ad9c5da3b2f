/** Totals of blocks of usage rows. Explained in docs/storage.md. */
export const statements: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS usage_blocks (
    customer_id TEXT NOT NULL,
    row_count BIGINT NOT NULL,
    first_seq BIGINT NOT NULL,
    total_count BIGINT NOT NULL,
    totals TEXT NOT NULL,
    PRIMARY KEY (customer_id, row_count, first_seq)
  )`,
]
