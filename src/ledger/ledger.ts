import type { Statement } from '../worker/storage/database.ts'
import { lockLedger } from './ledger-lock.ts'
import { batchesIn, callsIn, packBody } from './packed-body.ts'
import { startReader, type LedgerAnswer, type Reader } from './reader.ts'
import { Writer } from './writer.ts'
import { messageOfThrown } from '../protocol/thrown-message.ts'

/** The database of all workers of this host. Bodies and answers are those of the link's calls. */
export interface Ledger {
  /** Carries packed batches to the one writer. The outcomes, once they are on the disk. */
  write(body: Uint8Array): Promise<LedgerAnswer>
  /** Carries packed operations to the one writer. The outcomes; what was settled is on the disk. */
  operate(body: Uint8Array): Promise<LedgerAnswer>
  /** Carries packed batches that only read to a thread that does nothing else. */
  read(body: Uint8Array): Promise<LedgerAnswer>
  /** The same for those that read nothing that operations change. */
  lookUp(body: Uint8Array): Promise<LedgerAnswer>
  /** Resolves once the writer has answered. */
  check(): Promise<void>
  close(): Promise<void>
}

export interface LedgerDeps {
  /** Ms since the epoch. */
  readonly now: () => number
  /** Called when a thread ends by an error of the program. */
  readonly died: (error: Error) => void
}

/** A long total occupies one of them for a second; short reads then have the other. */
const READERS = 2

/**
 * Opens the database, creating it if necessary, and applies the schema.
 *
 * The writer has no thread of its own: it serves the link, too. Handing each call to another thread and its answer back
 * costs as much as carrying it out.
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
    // Readers see the tables alone; what they ask for may still be in the memory of the writer.
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

/** Names the file, of which SQLite's own messages say nothing. */
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
