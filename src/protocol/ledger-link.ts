import * as z from 'zod'
import { linkServerSchema } from './boot.ts'
import { MESSAGES_PATH, WAITING_PATH } from './link-messages.ts'

/**
 * The link between workers and the ledger process of their host: JSON over HTTP/1.1 inside TLS 1.3, pinned on both ends.
 * Calls may come as messages over one WebSocket inside it (link-messages.ts), and are answered as over HTTP.
 * The bodies are packed batches, or packed operations, and their outcomes (src/worker/storage: `packed-batches.ts`,
 * `packed-calls.ts`); a call that is not understood is answered 400.
 */
export const LEDGER_PATHS = {
  /** POST packed batches: the outcome of each, once all of them are on the disk. */
  write: '/v1/write',
  /** POST packed operations: the outcome of each; what was settled is on the disk. */
  operate: '/v1/operate',
  /** POST packed batches that only read; they see everything that was answered before. */
  read: '/v1/read',
  /** POST packed batches that only read what no operation changes. */
  lookUp: '/v1/look-up',
  /** GET with an upgrade to WebSocket: calls as messages. */
  messages: MESSAGES_PATH,
  /** GET `/v1/waiting/<id>`: the answer to a message that is larger than a message may be, once. */
  waiting: WAITING_PATH,
  /** GET: 200 once the writer has answered. */
  health: '/v1/health',
} as const

/** The database's name in the directory of the ledger. */
export const LEDGER_FILE = 'ledger.sqlite'

/** What the supervisor sends the ledger process first, over its IPC channel. */
export const ledgerBootSchema = z.strictObject({
  /** Where the database is. */
  directory: z.string().min(1),
  /** The ledgers of other engines, from there; where one exists, this one is not opened. */
  others: z.array(z.string().min(1)),
  link: linkServerSchema,
})

export type LedgerBoot = z.output<typeof ledgerBootSchema>

/** Messages of the ledger process. After `refused` it exits with status 1. */
export type FromLedger =
  | { readonly type: 'ready'; readonly port: number }
  | { readonly type: 'refused'; readonly reason: string }
