import { LEDGER_PATHS } from '../../protocol/ledger-link.ts'
import type { BatchDeps } from '../batching/batcher.ts'
import { startDeadline } from '../batching/deadline-timer.ts'
import { storageError, type BatchOutcome } from './batch-outcome.ts'
import { batchedStorage } from './batched-storage.ts'
import { concernsLedger } from './concerns-ledger.ts'
import type { Storage } from './database.ts'
import type { LedgerOutcome } from './ledger-calls.ts'
import type { PackedBatches } from './packed-batches.ts'
import { packCalls } from './packed-calls.ts'

/** The pinned mTLS service that leads to the ledger process. */
export interface LedgerBinding {
  fetch(url: string, init: RequestInit): Promise<Response>
}

/** The binding determines the destination; this host name never leaves the worker. */
const ORIGIN = 'https://ledger'

/** Far longer than any transaction takes; after that it is unknown whether it was committed. */
const WRITE_TIMEOUT_MS = 10_000

/** A total over a long ledger takes a second, and others may be ahead of it. */
const READ_TIMEOUT_MS = 30_000

/**
 * One SQLite database for all workers of a host, in a process that alone writes it (src/ledger). Batches of one moment
 * share a call, and those of all workers a commit.
 */
export function ledgerStorage(binding: LedgerBinding, host: BatchDeps): Storage {
  const call = <Outcome>(path: string, body: string, count: number, timeoutMs: number) =>
    callLedger<Outcome>(binding, path, body, { count, timeoutMs, now: host.now })
  const callBatches = (path: string, packed: PackedBatches, timeoutMs: number) =>
    call<BatchOutcome>(path, JSON.stringify(packed), packed.batches.length, timeoutMs)
  return batchedStorage(
    {
      write: (packed) => callBatches(LEDGER_PATHS.write, packed, WRITE_TIMEOUT_MS),
      read: (packed) => callBatches(pathOfRead(packed), packed, READ_TIMEOUT_MS),
      operate: (calls) =>
        call<LedgerOutcome>(LEDGER_PATHS.operate, packCalls(calls), calls.length, WRITE_TIMEOUT_MS),
    },
    host,
  )
}

/** A look-up of what no operation changes does not wait for the writer. */
function pathOfRead({ texts }: PackedBatches): string {
  const concerned = texts.some((sql) => concernsLedger({ sql, params: [] }))
  return concerned ? LEDGER_PATHS.read : LEDGER_PATHS.lookUp
}

interface CallTerms {
  /** Of outcomes that are expected. */
  readonly count: number
  readonly timeoutMs: number
  readonly now: () => number
}

/** @throws StorageUnavailable when there is no answer, or not this one */
async function callLedger<Outcome>(
  binding: LedgerBinding,
  path: string,
  body: string,
  { count, timeoutMs, now }: CallTerms,
): Promise<readonly Outcome[]> {
  const controller = new AbortController()
  const deadline = startDeadline(timeoutMs, now, () => controller.abort())
  try {
    const answer = await binding.fetch(ORIGIN + path, {
      method: 'POST',
      body,
      signal: controller.signal,
    })
    if (answer.status !== 200) throw new Error(`status ${answer.status}`)
    const outcomes: unknown = await answer.json()
    if (!Array.isArray(outcomes) || outcomes.length !== count) throw new Error('other outcomes')
    // The ledger is the same program, behind a pinned certificate.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return outcomes as Outcome[]
  } catch (cause) {
    throw storageError('the ledger process does not answer', false, cause)
  } finally {
    deadline.stop()
  }
}
