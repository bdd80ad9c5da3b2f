import type { Row } from './database.ts'

/**
 * Typed readers for the columns of a row. PostgreSQL returns BIGINT as text and SQLite as a number.
 * @throws Error when a column is missing or has another type, which is a bug
 */

/** Text. */
export function textOf(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw unexpected(column)
  return value
}

/** Text or null. */
export function optionalTextOf(row: Row, column: string): string | null {
  return row[column] === null ? null : textOf(row, column)
}

/** A number that is not null: if whole, at most 2^53 in magnitude. For counts, times, flags and durations. */
export function numberOf(row: Row, column: string): number {
  const value = row[column]
  if (value === null || value === undefined || value === '') throw unexpected(column)
  const number = Number(value)
  const exact = Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number)
  if (!exact) throw unexpected(column)
  return number
}

/** A number or null. */
export function optionalNumberOf(row: Row, column: string): number | null {
  return row[column] === null ? null : numberOf(row, column)
}

/** Money, read as `CAST(column AS TEXT)`. */
export function bigintOf(row: Row, column: string): bigint {
  const text = textOf(row, column)
  if (!/^-?[0-9]+$/.test(text)) throw unexpected(column)
  return BigInt(text)
}

/** Money or null. */
export function optionalBigintOf(row: Row, column: string): bigint | null {
  return row[column] === null ? null : bigintOf(row, column)
}

/** A flag stored as 0 or 1. */
export function flagOf(row: Row, column: string): boolean {
  return numberOf(row, column) === 1
}

function unexpected(column: string): Error {
  return new Error(`internal error: column ${column} is missing or of the wrong type`)
}
