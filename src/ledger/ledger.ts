import type { Statement } from '../worker/storage/database.ts'
import { lockLedger } from './ledger-lock.ts'
import { batchesIn, callsIn, packBody } from './packed-body.ts'
import { startReader, type LedgerAnswer, type Reader } from './reader.ts'
import { Writer } from './writer.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'

/** The database that all workers of this host share. Bodies and answers are those of the link's calls. */
export interface Ledger {
  /** Passes packed batches to the writer. Resolves to their outcomes once these are on the disk. */
  write(body: Uint8Array): Promise<LedgerAnswer>
  /** Passes packed operations to the writer. Resolves to their outcomes; settlements are then on the disk. */
  operate(body: Uint8Array): Promise<LedgerAnswer>
  /** Passes packed batches that only read to a reader thread, after a fold has brought the tables up to date. */
  read(body: Uint8Array): Promise<LedgerAnswer>
  /** Passes packed batches to a reader thread without a fold; for batches that read nothing that operations change. */
  lookUp(body: Uint8Array): Promise<LedgerAnswer>
  /** Resolves once the writer has answered. */
  check(): Promise<void>
  close(): Promise<void>
}

export interface LedgerDeps {
  /** Ms since the epoch. */
  readonly now: () => number
  /** Called when an uncaught error ends a reader thread. */
  readonly died: (error: Error) => void
}

/** Reader threads. A sum over many rows occupies one for a second; short reads then use the other. */
const READERS = 2

/**
 * Opens the database, creating it if necessary, and applies the schema.
 *
 * The writer runs on the main thread, which also serves the link: passing each call to another thread and its answer back
 * would cost as much as carrying it out.
 * @throws Error with the reason when it cannot be opened, or another process writes it
 */
export async function openLedger(path: string, { now, died }: LedgerDeps): Promise<Ledger> {
  const unlock = lockLedger(path)
  const writer = await opened(path, now)
  const readers = await Promise.all(Array.from({ length: READERS }, () => startReader(path, died)))
  const write = async (batches: readonly (readonly Statement[])[]) =>
    (await writer.batches(batches)).map(({ outcome }) => outcome)
  const lookUp = (body: Uint8Array) => leastBusy(readers).read(body)
  return {
    write: (body) => answered(batchesIn(body), write),
    operate: (body) => answered(callsIn(body), (calls) => writer.operations(calls)),
    // Readers see only the tables; newer data may still be in the memory of the writer.
    read: async (body) => ((await writer.fold()) ? lookUp(body) : null),
    lookUp,
    check: async () => void (await writer.batches([])),
    close: async () => {
      await Promise.all(readers.map((reader) => reader.close()))
      writer.close()
      unlock()
    },
  }
}

/** Opens the writer; adds the path to errors, because SQLite's messages do not name it. */
async function opened(path: string, now: () => number): Promise<Writer> {
  try {
    return await Writer.open(path, now)
  } catch (error) {
    const reason = messageOfThrown(error)
    throw new Error(`cannot open ${path}: ${reason}`, { cause: error })
  }
}

async function answered<Item>(
  items: readonly Item[] | undefined,
  carryOut: (items: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<LedgerAnswer> {
  return items === undefined ? null : packBody(await carryOut(items))
}

function leastBusy(readers: readonly Reader[]): Reader {
  return readers.reduce((best, reader) => (reader.waiting < best.waiting ? reader : best))
}
