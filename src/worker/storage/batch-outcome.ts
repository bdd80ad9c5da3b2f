import { StorageUnavailable, type Row } from './database.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** The rows of each statement of a batch. */
export type BatchRows = readonly (readonly Row[])[]

/**
 * The result of a batch that ran in a Durable Object. Error classes do not survive the call between objects, so the
 * kind of failure is transferred as data.
 */
export type BatchOutcome =
  | { readonly ok: true; readonly rows: BatchRows }
  | { readonly ok: false; readonly unavailable: boolean; readonly message: string }

/** The engine refused a statement (a constraint, a type, unknown SQL): repeating it changes nothing. */
export class StatementRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StatementRefused'
  }
}

/** The rows of an outcome. @throws StorageUnavailable @throws StatementRefused */
export function rowsOf(outcome: BatchOutcome): BatchRows {
  if (outcome.ok) return outcome.rows
  throw storageError(outcome.message, !outcome.unavailable)
}

/** The outcome of a batch that returns its rows or throws. */
export async function outcomeOf(batch: Promise<BatchRows>): Promise<BatchOutcome> {
  try {
    return { ok: true, rows: await batch }
  } catch (error) {
    return failedOutcome(messageOfThrown(error), error instanceof StatementRefused)
  }
}

/** The outcome of a batch that the engine refused, or of an engine that failed. */
export function failedOutcome(
  message: string,
  refused: boolean,
): Extract<BatchOutcome, { ok: false }> {
  return { ok: false, unavailable: !refused, message }
}

/** The error for an engine's failure. */
export function storageError(message: string, refused: boolean, cause?: unknown): Error {
  const options = cause === undefined ? {} : { cause }
  return refused ? new StatementRefused(message, options) : new StorageUnavailable(message, options)
}
