import { statement as admit } from '../postgres-functions/admit-v1.ts'
import { statement as release } from '../postgres-functions/release-v1.ts'
import { statement as settle } from '../postgres-functions/settle-v1.ts'
import { statements as shared } from '../postgres-functions/shared-v1.ts'

/**
 * The ledger's operations as functions of PostgreSQL (docs/storage.md). Receipts are stored without compression: they are
 * base64, on which compression costs more than it saves.
 */
export const statements: readonly string[] = [
  ...shared,
  admit,
  settle,
  release,
  'ALTER TABLE receipts ALTER COLUMN jws SET STORAGE EXTERNAL',
]
