import { createBatcher, type BatchDeps } from '../batching/batcher.ts'
import { createMicrotaskBatcher } from '../batching/microtask-batcher.ts'
import { rowsOf, type BatchOutcome, type BatchRows } from './batch-outcome.ts'
import { StorageUnavailable, type Database, type Statement, type Storage } from './database.ts'
import { ledgerBehind, type LedgerCall, type LedgerOutcome } from './ledger-calls.ts'
import type { LedgerOperations } from './ledger-operations.ts'
import { packBatches, type PackedBatches } from './packed-batches.ts'
import { isRead } from './sql.ts'

/**
 * The calls that carry batches to the one database of all customers. Each resolves to the outcome of each batch, in order.
 */
export interface BatchCalls {
  write(packed: PackedBatches): Promise<readonly BatchOutcome[]>
  read(packed: PackedBatches): Promise<readonly BatchOutcome[]>
  /** Carries out operations on the ledger; absent: the engine runs them as batches of SQL. */
  readonly operate?: (calls: readonly LedgerCall[]) => Promise<readonly LedgerOutcome[]>
  /** Carries out an operation synchronously; undefined: this is not possible now, and nothing was changed. */
  readonly atOnce?: ((call: LedgerCall) => LedgerOutcome | undefined) | undefined
}

/** Maximum number of batches or operations in one transaction; such a transaction delays others by tens of milliseconds. */
const MAX_BATCHES = 128

/**
 * Maximum size of one call. Calls between Durable Objects carry 32 MiB; a receipt has a thousand characters, evidence up to
 * millions.
 */
const MAX_BATCH_CHARACTERS = 4 * 1024 * 1024

/** Size of an operation without its receipt and its kept answer, characters. */
const SMALL_CALL_CHARACTERS = 1_000

/** Far longer than any transaction takes; after that it is unknown whether the batch was committed. */
const JOIN_TIMEOUT_MS = 10_000

const RULES = {
  maxItems: MAX_BATCHES,
  joinTimeoutMs: JOIN_TIMEOUT_MS,
  timeoutError: () => new StorageUnavailable('the ledger did not answer in time'),
}

/**
 * A storage that combines writes which arrive together into one call and one transaction. Without the batcher, a request
 * costs 1.25 times the CPU at 16 connections and 1.61 times at 64 (docs/performance-findings.md, "What each batcher saves").
 *
 * Batches that only read are sent alone: they need no commit, their results may be large, and a slow or failing one must not
 * affect the writes of others.
 */
export function batchedStorage(calls: BatchCalls, host: BatchDeps): Storage {
  const write = createBatcher<readonly Statement[], BatchOutcome>(host, {
    ...RULES,
    run: (batches) => calls.write(packBatches(batches)),
    size: { of: charactersOf, max: MAX_BATCH_CHARACTERS },
  })
  const read = async (statements: readonly Statement[]) => {
    const [outcome] = await calls.read(packBatches([statements]))
    if (outcome === undefined) throw new Error('internal error: a read was left unanswered')
    return outcome
  }
  const ledger = calls.operate && batchedLedger(calls.operate, calls.atOnce, host)
  const parts = { read, write, ledger }
  const directory = new BatchedDatabase(parts, undefined)
  return { customer: (id) => new BatchedDatabase(parts, id), directory: () => directory }
}

interface DatabaseParts {
  readonly read: (statements: readonly Statement[]) => Promise<BatchOutcome>
  readonly write: (statements: readonly Statement[]) => Promise<BatchOutcome>
  readonly ledger: LedgerOperations | undefined
}

/**
 * The database of a customer, or of the directory (undefined). Each request opens some, so it holds little more than the id.
 */
class BatchedDatabase implements Database {
  readonly #parts: DatabaseParts
  readonly #customerId: string | undefined

  constructor(parts: DatabaseParts, customerId: string | undefined) {
    this.#parts = parts
    this.#customerId = customerId
  }

  get ledger(): LedgerOperations | undefined {
    return this.#parts.ledger
  }

  async batch(statements: readonly Statement[]): Promise<BatchRows> {
    const { read, write } = this.#parts
    if (statements.every(isRead)) return rowsOf(await read(statements))
    return rowsOf(await write(statements.map((one) => writtenFor(this.#customerId, one))))
  }
}

/** Adds the customer to a statement that writes, where it is known: the engine then knows that no other account changes. */
function writtenFor(customerId: string | undefined, statement: Statement): Statement {
  return customerId === undefined || isRead(statement) ? statement : { ...statement, customerId }
}

/** The operations of a ledger. Those that arrive together share a call, unless `atOnce` can decide them without one. */
function batchedLedger(
  operate: NonNullable<BatchCalls['operate']>,
  atOnce: BatchCalls['atOnce'],
  host: BatchDeps,
): LedgerOperations {
  const size = { of: charactersOfCall, max: MAX_BATCH_CHARACTERS }
  const rules = { ...RULES, run: operate, size }
  const batched = createBatcher<LedgerCall, LedgerOutcome>(host, rules)
  if (atOnce === undefined) return ledgerBehind(batched)
  // Settlements are coalesced already, and `atOnce` decides most other operations, so there is hardly anything to wait for.
  const settle = createMicrotaskBatcher<LedgerCall, LedgerOutcome>(host, rules)
  return ledgerBehind((call) =>
    call.kind === 'settle' ? settle(call) : (atOnce(call) ?? batched(call)),
  )
}

/** Approximate size of an operation: its longest texts, and room for the rest. */
function charactersOfCall(call: LedgerCall): number {
  if (call.kind === 'evidence') return SMALL_CALL_CHARACTERS + call.evidence.dataB64.length
  if (call.kind !== 'settle') return SMALL_CALL_CHARACTERS
  const { receipt, answer } = call.entry
  return SMALL_CALL_CHARACTERS + (receipt?.jws.length ?? 0) + (answer?.length ?? 0)
}

/** Characters of the parameters; the statement texts are not counted, because a call has few and sends each once. */
function charactersOf(statements: readonly Statement[]): number {
  let sum = 0
  for (const { params } of statements) {
    for (const value of params) sum += typeof value === 'string' ? value.length : 1
  }
  return sum
}
