import type { Migration } from './migrate.ts'
import { statements as ledger } from './migrations/0001-ledger.ts'
import { statements as settlementBounds } from './migrations/0002-settlement-bounds.ts'
import { statements as keyLimits } from './migrations/0003-key-limits.ts'
import { statements as idempotentRequests } from './migrations/0004-idempotent-requests.ts'
import { statements as keyAttestation } from './migrations/0005-key-attestation.ts'
import { statements as webhooks } from './migrations/0006-webhooks.ts'
import { statements as administration } from './migrations/0007-administration.ts'
import { statements as operatorConsole } from './migrations/0008-console.ts'
import { statements as journal } from './migrations/0009-journal.ts'
import { statements as receiptHeads } from './migrations/0010-receipt-heads.ts'
import { statements as usageBlocks } from './migrations/0011-usage-blocks.ts'
import { statements as emptiedReceipts } from './migrations/0012-emptied-receipts.ts'
import { statements as postgresLedgerFunctions } from './migrations/postgres-0001-ledger-functions.ts'
import { statements as postgresFlatFunctions } from './migrations/postgres-0002-flat-functions.ts'
import { statements as postgresFewerUsageIndexes } from './migrations/postgres-0003-fewer-usage-indexes.ts'
import { statements as postgresKeyCounts } from './migrations/postgres-0004-key-counts.ts'
import { statements as sqliteReceiptsById } from './migrations/sqlite-0000-receipts-by-id.ts'
import { statements as sqliteFewerUsageIndexes } from './migrations/sqlite-0001-fewer-usage-indexes.ts'

/** Every step of the schema that all engines have, oldest first. */
export const MIGRATIONS: readonly Migration[] = [
  { id: '0001-ledger', statements: ledger },
  { id: '0002-settlement-bounds', statements: settlementBounds },
  { id: '0003-key-limits', statements: keyLimits },
  { id: '0004-idempotent-requests', statements: idempotentRequests },
  { id: '0005-key-attestation', statements: keyAttestation },
  { id: '0006-webhooks', statements: webhooks },
  { id: '0007-administration', statements: administration },
  { id: '0008-console', statements: operatorConsole },
  { id: '0009-journal', statements: journal },
  { id: '0010-receipt-heads', statements: receiptHeads },
  { id: '0011-usage-blocks', statements: usageBlocks },
  { id: '0012-emptied-receipts', statements: emptiedReceipts },
]

/** The migrations of engines with SQLite: the common ones and those that only they need. */
export const SQLITE_MIGRATIONS: readonly Migration[] = [
  { id: 'sqlite-0000-receipts-by-id', statements: sqliteReceiptsById },
  ...MIGRATIONS,
  { id: 'sqlite-0001-fewer-usage-indexes', statements: sqliteFewerUsageIndexes },
]

/** The migrations of PostgreSQL: the common ones, then those that only it needs. */
export const POSTGRES_MIGRATIONS: readonly Migration[] = [
  ...MIGRATIONS,
  { id: 'postgres-0001-ledger-functions', statements: postgresLedgerFunctions },
  { id: 'postgres-0002-flat-functions', statements: postgresFlatFunctions },
  { id: 'postgres-0003-fewer-usage-indexes', statements: postgresFewerUsageIndexes },
  { id: 'postgres-0004-key-counts', statements: postgresKeyCounts },
]
