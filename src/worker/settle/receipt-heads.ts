import type { SignedReceipt } from '../link/link.ts'
import { StorageUnavailable, type Database, type Storage } from '../storage/database.ts'
import { int64, sql } from '../storage/sql.ts'
import { retainUntil } from './settle-sql.ts'

/**
 * How long a stored head is assumed to be still stored, ms; after that it is stored again, which changes nothing if it still
 * is. So a database that was restored without the head while the router was running soon has it again.
 */
const SURE_FOR_MS = 60_000

/** Heads in memory: more than a router uses at the same time. */
const MAX_KNOWN = 1_000

type Head = Pick<SignedReceipt['head'], 'sha256' | 'text'>

/**
 * Stores the heads of receipts, each once and at least until the last receipt that names it expires. A receipt is stored
 * only after its head.
 */
export class ReceiptHeads {
  readonly #storage: Pick<Storage, 'directory'>
  readonly #now: () => number
  /** Until when each head is kept at least, and when that was confirmed, ms; in the order in which they were stored. */
  readonly #known = new Map<string, { readonly until: number; readonly confirmedAt: number }>()

  /** @param now ms since the epoch */
  constructor(storage: Pick<Storage, 'directory'>, now: () => number) {
    this.#storage = storage
    this.#now = now
  }

  /**
   * Resolves once a head is stored for receipts that expire at this time (ms).
   * @throws StorageUnavailable when the storage does not answer
   */
  async remember(head: Head, expiresAtMs: number): Promise<void> {
    const until = retainUntil(expiresAtMs)
    const known = this.#known.get(head.sha256)
    const now = this.#now()
    const isKept = known !== undefined && known.until >= until
    if (isKept && Math.abs(now - known.confirmedAt) < SURE_FOR_MS) return
    try {
      await storeHead(this.#storage.directory(), head, until)
    } catch (error) {
      // The head was stored before; the next receipt checks again whether it still is.
      if (isKept && error instanceof StorageUnavailable) return
      throw error
    }
    this.#known.delete(head.sha256)
    this.#known.set(head.sha256, { until: Math.max(until, known?.until ?? 0), confirmedAt: now })
    const [oldest] = this.#known.keys()
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest)
  }
}

async function storeHead(directory: Database, { sha256, text }: Head, until: number) {
  await directory.batch([
    sql`INSERT INTO receipt_heads (sha256, head, expires_at)
      VALUES (${sha256}, ${text}, ${int64(until)})
      ON CONFLICT (sha256) DO UPDATE SET expires_at = excluded.expires_at
      WHERE receipt_heads.expires_at < excluded.expires_at`,
  ])
}
