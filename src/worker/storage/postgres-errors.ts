import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** What an error of PostgreSQL means for the batch (SQLSTATE: PostgreSQL manual, appendix A). */
export type PostgresFailure = 'retry' | 'refused' | 'unavailable'

/** Another transaction came first: nothing was written, and the same batch may succeed next time. */
const RETRY = new Set(['40001', '40P01'])

/** Classes of errors in the statement: unsupported feature, data, constraint, syntax and names. */
const REFUSED_CLASSES = new Set(['0A', '21', '22', '23', '42'])

/**
 * Exceptions within those classes: no right to a table, and a column, a function or a table that is not there. All of them are
 * made before the first batch, so the database is not the router's any more, or hides from its role what is.
 */
const UNREADABLE = new Set(['42501', '42703', '42883', '42P01'])

/** A lock was not granted in time; a call in an isolation level that its function does not accept. */
const LOCK_NOT_AVAILABLE = '55P03'
const WRONG_ISOLATION = '25001'

/** Five characters (PostgreSQL manual, appendix A); codes of the driver are words. */
const SQLSTATE = /^[0-9A-Z]{5}$/

/** Classifies an error by its SQLSTATE; one without (a lost connection, a timeout) is `unavailable`. */
export function classifyPostgresError(error: unknown): PostgresFailure {
  const state = sqlState(error)
  if (RETRY.has(state)) return 'retry'
  if (UNREADABLE.has(state)) return 'unavailable'
  return SQLSTATE.test(state) && REFUSED_CLASSES.has(state.slice(0, 2)) ? 'refused' : 'unavailable'
}

/** The driver's error that caused ours. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

/** The SQLSTATE of an error, or the driver's own code; empty: it has none. */
export function sqlState(error: unknown): string {
  const cause = causeOf(error)
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? code : ''
}

/** The message of a driver's error, with its SQLSTATE where it has one. */
export function describePostgresError(error: unknown): string {
  const message = messageOfThrown(causeOf(error))
  const state = sqlState(error)
  return SQLSTATE.test(state) ? `${message}: SQLSTATE ${state}` : message
}

/** Whether a lock was not granted within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE
}

/** Whether a function of the ledger refused the transaction that it was called in. */
export function isWrongIsolation(error: unknown): boolean {
  return sqlState(error) === WRONG_ISOLATION
}

/** Whether the connection on which an error came can be used again. */
export function survives(error: unknown): boolean {
  return (
    classifyPostgresError(error) !== 'unavailable' ||
    isLockTimeout(error) ||
    isWrongIsolation(error)
  )
}
