import { concernsLedger } from '../worker/embedded/concerns.ts'
import { startLedgerThread, type LedgerThread, type ThreadAnswer } from './ledger-thread.ts'

/** The database of all workers of this host. */
export interface Ledger {
  /** Carries packed batches to the one writer. The outcomes, once they are on the disk. */
  write(body: Uint8Array): Promise<ThreadAnswer>
  /** Carries packed operations to the one writer. The outcomes; what was settled is on the disk. */
  operate(body: Uint8Array): Promise<ThreadAnswer>
  /** Carries packed batches that only read to a thread that does nothing else. */
  read(body: Uint8Array): Promise<ThreadAnswer>
  close(): Promise<void>
}

/** A long total occupies one of them for a second; short reads then have the other. */
const READERS = 2

const WRITER_THREAD = new URL('./writer-thread.ts', import.meta.url)
const READER_THREAD = new URL('./reader-thread.ts', import.meta.url)

/**
 * Opens the database, creating it if necessary, and applies the schema.
 * @param died called when a thread ends by an error of the program
 * @throws Error with the reason when it cannot be opened, or another process writes it
 */
export async function openLedger(path: string, died: (error: Error) => void): Promise<Ledger> {
  const writer = await startLedgerThread(WRITER_THREAD, path, died)
  const readers = await Promise.all(
    Array.from({ length: READERS }, () => startLedgerThread(READER_THREAD, path, died)),
  )
  let operations = 0
  let folded = 0
  /** Readers see the tables alone; what they ask for may still be in the memory of the writer. */
  const isFolded = async (): Promise<boolean> => {
    const now = operations
    if (now === folded) return true
    const done = (await writer.call('fold')) !== null
    if (done) folded = Math.max(folded, now)
    return done
  }
  return {
    write: (body) => writer.call('batches', body),
    operate: (body) => {
      operations += 1
      return writer.call('operations', body)
    },
    read: async (body) => {
      if (readsLedger(body) && !(await isFolded())) return null
      return leastBusy(readers).call('batches', body)
    },
    close: async () => {
      await Promise.all([writer, ...readers].map((thread) => thread.close()))
    },
  }
}

/** Whether packed batches read what operations change. What is malformed is refused by the thread. */
function readsLedger(body: Uint8Array): boolean {
  const packed: unknown = JSON.parse(new TextDecoder().decode(body))
  if (typeof packed !== 'object' || packed === null || !('texts' in packed)) return false
  const { texts } = packed
  return (
    Array.isArray(texts) &&
    texts.some((sql) => typeof sql === 'string' && concernsLedger({ sql, params: [] }))
  )
}

function leastBusy(threads: readonly LedgerThread[]): LedgerThread {
  return threads.reduce((best, thread) => (thread.waiting < best.waiting ? thread : best))
}
