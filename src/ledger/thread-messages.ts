import { z } from 'zod'

/** What a thread of the ledger is started with. */
export const threadPlanSchema = z.object({
  /** The database. */
  path: z.string(),
})

/** What a thread is asked for: batches or operations in the body of a call of the link, or a fold. */
export type CallKind = 'batches' | 'operations' | 'fold'

/** A call to a thread. */
export interface ThreadCall {
  readonly id: number
  readonly kind: CallKind
  /** Of a fold empty. */
  readonly body: Uint8Array
}

/** Messages of a thread. */
export type FromThread =
  | { readonly type: 'ready' }
  /** The database cannot be opened. */
  | { readonly type: 'failed'; readonly reason: string }
  /** The answer to a call, JSON; null: it was not understood, or the fold failed. */
  | { readonly type: 'answer'; readonly id: number; readonly body: Uint8Array | null }
