/**
 * Settlements that are not in the other tables yet. Used by engines that keep accounts in memory; empty on the others.
 * Explained in docs/storage.md.
 */
export const statements: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS journal (
    slot INTEGER PRIMARY KEY,
    entries TEXT NOT NULL
  )`,
]
