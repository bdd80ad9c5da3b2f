import { createBatcher, type BatchDeps } from '../batching/batcher.ts'
import { rowsOf, storageError, type BatchOutcome } from './batch-outcome.ts'
import {
  StorageUnavailable,
  type YieldDuring,
  type Database,
  type Statement,
  type Storage,
} from './database.ts'
import {
  admissionItem,
  readAdmission,
  readSettlement,
  releaseItem,
  settlementItem,
  type LedgerAnswer,
  type LedgerEnd,
  type LedgerFunction,
  type LedgerItem,
} from './postgres-calls.ts'
import type { AdmissionEntry, LedgerOperations } from './ledger-operations.ts'
import { callObject, type ObjectNamespace } from './object-call.ts'
import { isRead } from './sql.ts'

/** The calls that a `PostgresPool` answers. */
export interface PoolTarget {
  /** `customerId` names the customer of the batch; null: the directory. */
  batch(customerId: string | null, statements: readonly Statement[]): PromiseLike<BatchOutcome>
  /** The answer of each operation, in order. */
  ledger(name: LedgerFunction, items: readonly LedgerItem[]): PromiseLike<readonly LedgerAnswer[]>
  /** The end of an operation that was answered `locked`; may take long. */
  ledgerAlone(name: LedgerFunction, item: LedgerItem): PromiseLike<LedgerEnd>
}

/** What the storage needs from the isolate. */
export interface PoolHost extends BatchDeps {
  /** Called when an operation has waited for a customer's row that another transaction kept locked, with the wait in ms. */
  readonly rowWaited?: ((ms: number) => void) | undefined
}

const OBJECT = 'pool'

/** Maximum number and size of operations in one call to the pool. The pool may combine several calls. */
const MAX_ITEMS = 128
const MAX_CHARACTERS = 4 * 1024 * 1024

/** The time limit of the pool for a batch, ms; after it, it is unknown whether the operation was committed. */
const JOIN_TIMEOUT_MS = 10_000

/**
 * One database for all customers and all instances, reached through the pool object of this process. Ledger operations of
 * requests that arrive together share one call to the pool and run as functions of the database (`postgres-functions/`).
 */
export function postgresStorage(namespace: ObjectNamespace<PoolTarget>, host: PoolHost): Storage {
  const operate = operations(namespace, host)
  const plansText = createPlansText()
  const database = (customerId: string | null, yieldDuring: YieldDuring = atOnce): Database => ({
    batch: async (statements) => {
      const run = () =>
        callObject(namespace, OBJECT, (target) => target.batch(customerId, statements))
      // Reads wait for no locked row.
      return rowsOf(await (statements.every(isRead) ? run() : yieldDuring(run)))
    },
    ledger: ledgerOf((name, item) => operate(name, item, yieldDuring), plansText, customerId ?? ''),
  })
  const directory = database(null)
  return { customer: database, directory: () => directory }
}

type Plans = AdmissionEntry['plans']

/** Carries out one operation, together with others that arrive at the same time. */
type Operate = (name: LedgerFunction, item: LedgerItem) => Promise<string | null>

const atOnce: YieldDuring = (wait) => wait()

function operations(namespace: ObjectNamespace<PoolTarget>, host: PoolHost) {
  const batcherOf = (name: LedgerFunction) =>
    createBatcher<LedgerItem, LedgerAnswer>(host, {
      run: (items) => callObject(namespace, OBJECT, (target) => target.ledger(name, items)),
      maxItems: MAX_ITEMS,
      size: { of: ({ entry }) => entry.length, max: MAX_CHARACTERS },
      joinTimeoutMs: JOIN_TIMEOUT_MS,
      timeoutError: () => new StorageUnavailable('the pool of connections did not answer in time'),
    })
  const batchers = {
    admit: batcherOf('admit'),
    settle: batcherOf('settle'),
    release: batcherOf('release'),
  }
  const alone = async (name: LedgerFunction, item: LedgerItem) => {
    const begunAt = host.now()
    try {
      return await callObject(namespace, OBJECT, (target) => target.ledgerAlone(name, item))
    } finally {
      host.rowWaited?.(host.now() - begunAt)
    }
  }
  return async (...[name, item, yieldDuring]: [...Parameters<Operate>, YieldDuring]) => {
    const answer = await batchers[name](item)
    // The row is locked: only this operation waits for it, not those that shared its call.
    const end = 'locked' in answer ? await yieldDuring(() => alone(name, item)) : answer
    if (end.ok) return end.answer
    throw storageError(end.message, !end.unavailable)
  }
}

function ledgerOf(
  operate: Operate,
  plansText: (plans: Plans) => string,
  customerId: string,
): LedgerOperations {
  return {
    admit: async (entry) => {
      const answer = await operate('admit', admissionItem(entry, plansText(entry.plans)))
      return answer === null ? undefined : readAdmission(answer)
    },
    settle: async (entry) => readSettlement(await operate('settle', settlementItem(entry))),
    release: async (requestId) =>
      (await operate('release', releaseItem(requestId, customerId))) === 'true',
  }
}

/** Serialises plans to JSON, once for each configuration. */
function createPlansText(): (plans: Plans) => string {
  const texts = new WeakMap<Plans, string>()
  return (plans) => {
    const known = texts.get(plans) ?? JSON.stringify(plans)
    texts.set(plans, known)
    return known
  }
}
