import { messageOfThrown } from '../../protocol/thrown-message.ts'

/** What an error of PostgreSQL means for the batch (SQLSTATE: PostgreSQL manual, appendix A). */
export type PostgresFailure = 'retry' | 'refused' | 'unavailable'

/** Another transaction was first: nothing was written, and a retry may succeed. */
const RETRY = new Set(['40001', '40P01'])

/** Classes of errors in the statement: unsupported feature, data, constraint, syntax and names. */
const REFUSED_CLASSES = new Set(['0A', '21', '22', '23', '42'])

/**
 * Exceptions within those classes: no permission, and an undefined column, function or table. Migrations make all of them
 * before the first batch, so the database is not, or no longer, the router's, or its role lacks permissions.
 */
const UNREADABLE = new Set(['42501', '42703', '42883', '42P01'])

/** SQLSTATEs: a lock was not granted in time; a function was called in an isolation level that it does not accept. */
const LOCK_NOT_AVAILABLE = '55P03'
const WRONG_ISOLATION = '25001'

/** An SQLSTATE: five characters (PostgreSQL manual, appendix A). The driver's own codes are words. */
const SQLSTATE = /^[0-9A-Z]{5}$/

/** Classifies an error by its SQLSTATE; an error without one (a lost connection, a timeout) is `unavailable`. */
export function classifyPostgresError(error: unknown): PostgresFailure {
  const state = sqlState(error)
  if (RETRY.has(state)) return 'retry'
  if (UNREADABLE.has(state)) return 'unavailable'
  return SQLSTATE.test(state) && REFUSED_CLASSES.has(state.slice(0, 2)) ? 'refused' : 'unavailable'
}

/** The driver's error inside an error of this program. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

/** The SQLSTATE of an error, or the driver's own code; empty where it has neither. */
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

/** Whether a ledger function refused the isolation level of its transaction. */
export function isWrongIsolation(error: unknown): boolean {
  return sqlState(error) === WRONG_ISOLATION
}

/** Whether a connection can be used again after this error. */
export function survives(error: unknown): boolean {
  return (
    classifyPostgresError(error) !== 'unavailable' ||
    isLockTimeout(error) ||
    isWrongIsolation(error)
  )
}
