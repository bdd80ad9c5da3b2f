/** What a failure of PostgreSQL means for the batch (SQLSTATE: PostgreSQL manual, appendix A). */
export type PostgresFailure = 'retry' | 'refused' | 'unavailable'

/** Another transaction came first: nothing was written, the same batch may win the next time. */
const RETRY = new Set(['40001', '40P01'])

/** Classes that blame the statement: unsupported feature, data, constraint, syntax and names. */
const REFUSED_CLASSES = new Set(['0A', '21', '22', '23', '42'])

/** Within those classes: rights the operator has yet to grant. */
const CONFIGURATION_STATES = new Set(['42501'])

/** Judges an error by its SQLSTATE; one without (a lost connection, a time-out) is `unavailable`. */
export function classifyPostgresError(error: unknown): PostgresFailure {
  const state = sqlState(error)
  if (RETRY.has(state)) return 'retry'
  if (CONFIGURATION_STATES.has(state)) return 'unavailable'
  return state.length === 5 && REFUSED_CLASSES.has(state.slice(0, 2)) ? 'refused' : 'unavailable'
}

/** The driver's error behind one of ours. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

function sqlState(error: unknown): string {
  const cause = causeOf(error)
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? code : ''
}
