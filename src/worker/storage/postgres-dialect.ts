import type { SqlValue } from './database.ts'

/** The few differences between the shared dialect and PostgreSQL's wire. */

/** Quoted text, quoted names and comments are stepped over; a `?` in them is no placeholder. */
const PLACEHOLDER = /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\?/g

/** Rewrites the placeholders `?` to `$1`, `$2`, ... */
export function numberPlaceholders(sql: string): string {
  let count = 0
  return sql.replace(PLACEHOLDER, (found) => (found === '?' ? `$${++count}` : found))
}

/**
 * PostgreSQL sends int8 and numeric as text. Within 2^53 they become numbers, as SQLite gives them; beyond it
 * the digits stay text, because a number would lose some.
 */
export function integerFromText(text: string): SqlValue {
  const value = Number(text)
  return Number.isSafeInteger(value) || text.includes('.') ? value : text
}

/** SQLite has no booleans: its comparisons give 1 and 0. */
export function flagFromText(text: string): SqlValue {
  return text === 't' ? 1 : 0
}
