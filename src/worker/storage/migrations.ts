import type { Migration } from './migrate.ts'
import { statements as ledger } from './migrations/0001-ledger.ts'
import { statements as settlementBounds } from './migrations/0002-settlement-bounds.ts'

/** Every step of the schema, oldest first. */
export const MIGRATIONS: readonly Migration[] = [
  { id: '0001-ledger', statements: ledger },
  { id: '0002-settlement-bounds', statements: settlementBounds },
]
