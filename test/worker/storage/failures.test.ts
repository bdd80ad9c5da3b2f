import { describe, expect, it } from 'vitest'
import {
  classifyPostgresError,
  type PostgresFailure,
} from '../../../src/worker/storage/postgres-errors.ts'
import { isSqliteRefusal } from '../../../src/worker/storage/sqlite-refusal.ts'

describe('failures of SQLite', () => {
  it.each([
    'UNIQUE constraint failed: usage.id: SQLITE_CONSTRAINT',
    'D1_ERROR: near "x": syntax error: SQLITE_ERROR',
    'datatype mismatch: SQLITE_MISMATCH (extended: SQLITE_MISMATCH)',
  ])('blame the statement: %s', (message) => expect(isSqliteRefusal(message)).toBe(true))

  it.each([
    'database or disk is full: SQLITE_FULL',
    'database is locked: SQLITE_BUSY',
    'disk I/O error: SQLITE_IOERR',
    'D1_ERROR: Network connection lost.',
    'Durable Object is overloaded.',
    'D1_ERROR: no such table: x: SQLITE_ERROR',
    'no such column: x: SQLITE_ERROR',
    '',
  ])('blame the engine: %s', (message) => expect(isSqliteRefusal(message)).toBe(false))
})

describe('failures of PostgreSQL', () => {
  it.each<[string, PostgresFailure]>([
    ['40001', 'retry'],
    ['40P01', 'retry'],
    ['23505', 'refused'],
    ['22003', 'refused'],
    ['42601', 'refused'],
    ['42501', 'unavailable'],
    ['42703', 'unavailable'],
    ['42883', 'unavailable'],
    ['42P01', 'unavailable'],
    ['3F000', 'unavailable'],
    ['53100', 'unavailable'],
    ['57P01', 'unavailable'],
    ['25006', 'unavailable'],
    ['CONNECTION_CLOSED', 'unavailable'],
    ['ECONNREFUSED', 'unavailable'],
  ])('with the code %s mean: %s', (code, failure) => {
    expect(classifyPostgresError(Object.assign(new Error('x'), { code }))).toBe(failure)
    const wrapped = new Error('y', { cause: Object.assign(new Error('x'), { code }) })
    expect(classifyPostgresError(wrapped)).toBe(failure)
  })

  it('without a code mean that the server is unavailable', () => {
    expect(classifyPostgresError(new TypeError('x'))).toBe('unavailable')
    expect(classifyPostgresError('x')).toBe('unavailable')
  })
})
