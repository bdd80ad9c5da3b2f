import { LEDGER_PATHS } from '../../protocol/ledger-link.ts'
import type { BatchOutcome } from './batch-outcome.ts'
import { batchedStorage } from './batched-storage.ts'
import { concernsLedger } from './concerns-ledger.ts'
import type { Storage } from './database.ts'
import type { LedgerOutcome } from './ledger-calls.ts'
import { LedgerLink, type LedgerBinding, type LedgerLinkHost } from './ledger-link.ts'
import type { PackedBatches } from './packed-batches.ts'
import { packCalls } from './packed-calls.ts'

/**
 * Time limit of a write, ms. Far longer than any transaction takes; after it, it is unknown whether the transaction was
 * committed.
 */
const WRITE_TIMEOUT_MS = 10_000

/**
 * Within this time after the call, the ledger begins a settlement or refuses it, ms; the rest of `WRITE_TIMEOUT_MS` is for
 * the outcome to arrive. A ledger process that was stopped for a while finds calls that were given up long ago; settlements
 * of answers that were withheld meanwhile must not be billed.
 */
const SETTLED_WITHIN_MS = WRITE_TIMEOUT_MS - 1_000

/** Time limit of a read, ms. A sum over a long ledger takes a second, and others may be ahead of it. */
const READ_TIMEOUT_MS = 30_000

/**
 * One SQLite database for all workers of a host, in a process that alone writes it (src/ledger). Batches that arrive
 * together share a call, and those of all workers share a commit. Calls to the writer are sent as messages: they are small,
 * and need not wait behind reads. Reads go over HTTP, because they may be large or take long.
 */
export function ledgerStorage(binding: LedgerBinding, host: LedgerLinkHost): Storage {
  const link = new LedgerLink(binding, host)
  const post = <Outcome>(path: string, body: string, count: number) =>
    link.callSmall<Outcome>(path, body, { count, timeoutMs: WRITE_TIMEOUT_MS })
  return batchedStorage(
    {
      write: (packed) =>
        post<BatchOutcome>(LEDGER_PATHS.write, JSON.stringify(packed), packed.batches.length),
      read: (packed) => {
        const terms = { count: packed.batches.length, timeoutMs: READ_TIMEOUT_MS }
        return link.call<BatchOutcome>(pathOfRead(packed), JSON.stringify(packed), terms)
      },
      operate: (calls) => {
        const body = packCalls(calls, host.now() + SETTLED_WITHIN_MS)
        return post<LedgerOutcome>(LEDGER_PATHS.operate, body, calls.length)
      },
    },
    host,
  )
}

/** The path of a read: where it reads nothing that operations change, it need not wait for the writer. */
function pathOfRead({ texts }: PackedBatches): string {
  const concerned = texts.some((sql) => concernsLedger({ sql, params: [] }))
  return concerned ? LEDGER_PATHS.read : LEDGER_PATHS.lookUp
}
