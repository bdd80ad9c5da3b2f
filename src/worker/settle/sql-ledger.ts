import type { Database, Row } from '../storage/database.ts'
import type { AdmissionFacts, LedgerOperations } from '../storage/ledger-operations.ts'
import { flagOf, numberOf, optionalNumberOf, optionalTextOf, textOf } from '../storage/row.ts'
import { admissionBatch } from './admit-sql.ts'
import { releaseBatch, settlementBatch, settlementResult } from './settle-sql.ts'

/** The ledger operations of a database: the engine's own, or else batches of SQL. */
export function ledgerOf(db: Database): LedgerOperations {
  return db.ledger ?? sqlLedger(db)
}

/** The ledger operations as batches of the SQL that all engines share. Each batch is one transaction. */
export function sqlLedger(db: Pick<Database, 'batch'>): LedgerOperations {
  return {
    admit: async (entry) => {
      const rows = await db.batch(admissionBatch(entry))
      const facts = rows.at(-1)?.[0]
      return facts === undefined ? undefined : readFacts(facts)
    },
    settle: async (entry) => settlementResult(entry, await db.batch(settlementBatch(entry))),
    release: async (requestId) => (await db.batch(releaseBatch(requestId))).at(-1)?.length === 1,
  }
}

/** The facts of an admission from the last row of its batch. */
export function readFacts(row: Row): AdmissionFacts {
  return {
    admitted: flagOf(row, 'admitted'),
    customerName: textOf(row, 'customer_name'),
    keyName: textOf(row, 'key_name'),
    plan: textOf(row, 'plan'),
    receiptRetentionDays: optionalNumberOf(row, 'receipt_retention_days'),
    suspended: row['suspended_at'] !== null,
    expiresAt: optionalNumberOf(row, 'expires_at'),
    secretEndsAt: optionalNumberOf(row, 'ends_at'),
    models: optionalTextOf(row, 'models'),
    minAttestation: optionalTextOf(row, 'min_attestation'),
    requestsPerMinute: optionalNumberOf(row, 'requests_per_minute'),
    tokensPerMinute: optionalNumberOf(row, 'tokens_per_minute'),
    concurrentRequests: optionalNumberOf(row, 'concurrent_requests'),
    windowStartedAt: numberOf(row, 'window_started_at'),
    windowRequests: numberOf(row, 'window_requests'),
    windowTokens: numberOf(row, 'window_tokens'),
    isRepeat: flagOf(row, 'is_repeat'),
    overLimit: flagOf(row, 'over_limit'),
    openRequests: numberOf(row, 'open_requests'),
  }
}
