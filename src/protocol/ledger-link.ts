import * as z from 'zod'
import { linkServerSchema } from './boot.ts'
import { MESSAGES_PATH, WAITING_PATH } from './link-messages.ts'

/**
 * The link between workers and the ledger process of their host: JSON over HTTP/1.1 inside TLS 1.3, pinned on both
 * ends. Calls may also come as messages over one WebSocket inside it (link-messages.ts), and are answered like over
 * HTTP. The bodies are packed batches, or packed operations, and their results (src/worker/storage:
 * `packed-batches.ts`, `packed-calls.ts`); a call that cannot be parsed is answered with 400.
 */
export const LEDGER_PATHS = {
  /** POST packed batches: the result of each, once all of them are on the disk. */
  write: '/v1/write',
  /** POST packed operations: the result of each; settlements are on the disk by then. */
  operate: '/v1/operate',
  /** POST packed batches that only read; they see everything that was answered before. */
  read: '/v1/read',
  /** POST packed batches that only read rows that no operation changes. */
  lookUp: '/v1/look-up',
  /** GET with an upgrade to WebSocket: calls as messages. */
  messages: MESSAGES_PATH,
  /** GET `/v1/waiting/<id>`: the answer to a message, where it is too large for a message; once. */
  waiting: WAITING_PATH,
  /** GET: 200 once the writer has answered. */
  health: '/v1/health',
} as const

/** The database's name in the directory of the ledger. */
export const LEDGER_FILE = 'ledger.sqlite'

/** The first message of the supervisor to the ledger process, over its IPC channel. */
export const ledgerBootSchema = z.strictObject({
  /** The directory of the database. */
  directory: z.string().min(1),
  /** The files of other engines' ledgers, relative to that directory; where one exists, this ledger is not opened. */
  others: z.array(z.string().min(1)),
  link: linkServerSchema,
})

export type LedgerBoot = z.output<typeof ledgerBootSchema>

/** Messages of the ledger process. After `refused` it exits with status 1. */
export type FromLedger =
  | { readonly type: 'ready'; readonly port: number }
  | { readonly type: 'refused'; readonly reason: string }
