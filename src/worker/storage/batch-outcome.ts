import { StorageUnavailable, type Row } from './database.ts'

/**
 * The answer of a batch that ran in a Durable Object. Error classes do not survive the call between
 * objects, so what kind of failure it was travels as data.
 */
export type BatchOutcome =
  | { readonly ok: true; readonly rows: readonly (readonly Row[])[] }
  | { readonly ok: false; readonly unavailable: boolean; readonly message: string }

/** The engine refused a statement (a constraint, a type, unknown SQL): asking again changes nothing. */
export class StatementRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StatementRefused'
  }
}

/** The rows of an outcome. @throws StorageUnavailable @throws StatementRefused */
export function rowsOf(outcome: BatchOutcome): readonly (readonly Row[])[] {
  if (outcome.ok) return outcome.rows
  throw outcome.unavailable
    ? new StorageUnavailable(outcome.message)
    : new StatementRefused(outcome.message)
}

/** The outcome that stands for an error thrown by an engine. */
export function failedOutcome(
  error: unknown,
  isRefusal: (message: string, error: unknown) => boolean,
): BatchOutcome {
  const message = messageOf(error)
  return { ok: false, unavailable: !isRefusal(message, error), message }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
