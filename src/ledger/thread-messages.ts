import { z } from 'zod'

/** The `workerData` of a ledger thread. */
export const threadPlanSchema = z.object({
  /** The database. */
  path: z.string(),
})

/** A call to a thread that reads: packed batches, as a worker sent them. */
export interface ThreadCall {
  readonly id: number
  readonly body: Uint8Array
}

/** Messages of a thread. */
export type FromThread =
  | { readonly type: 'ready' }
  /** The database cannot be opened. */
  | { readonly type: 'failed'; readonly reason: string }
  /** The answer to a call, JSON; null: the body was malformed. */
  | { readonly type: 'answer'; readonly id: number; readonly body: Uint8Array | null }
