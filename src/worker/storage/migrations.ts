import type { Migration } from './migrate.ts'
import { statements as ledger } from './migrations/0001-ledger.ts'

/** Every step of the schema, oldest first. */
export const MIGRATIONS: readonly Migration[] = [{ id: '0001-ledger', statements: ledger }]
