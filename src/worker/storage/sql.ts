import type { SqlValue, Statement } from './database.ts'

/**
 * A statement, or a fragment of one, as a tagged template: a value becomes a `?` with its parameter, a fragment
 * contributes its own text and parameters. Only fragments change the text, so values can never become SQL.
 */
export function sql(
  texts: TemplateStringsArray,
  ...values: readonly (SqlValue | Statement)[]
): Statement {
  let joined = texts[0] ?? ''
  const params: SqlValue[] = []
  for (const [index, value] of values.entries()) {
    if (value !== null && typeof value === 'object') {
      joined += value.sql
      params.push(...value.params)
    } else {
      joined += '?'
      params.push(value)
    }
    joined += texts[index + 1] ?? ''
  }
  return { sql: joined, params }
}

/** A 64-bit integer: bound as text, so that no engine converts it to a float. */
export function int64(value: bigint | number): Statement {
  return { sql: 'CAST(? AS BIGINT)', params: [value.toString()] }
}

/** Like `int64`, or null. */
export function nullableInt64(value: bigint | number | null): Statement {
  return { sql: 'CAST(? AS BIGINT)', params: [value === null ? null : value.toString()] }
}

/** Text or null where the engine cannot infer the type, as in a SELECT list. */
export function text(value: string | null): Statement {
  return { sql: 'CAST(? AS TEXT)', params: [value] }
}

/** A measured quantity or null in a SELECT list. */
export function real(value: number | null): Statement {
  return { sql: 'CAST(? AS DOUBLE PRECISION)', params: [value] }
}

/** A small integer or flag in a SELECT list. */
export function small(value: number): Statement {
  return { sql: 'CAST(? AS INTEGER)', params: [value] }
}

/** A list of values in parentheses, for IN; never empty. */
export function list(values: readonly string[]): Statement {
  return { sql: `(${values.map(() => '?').join(', ')})`, params: values }
}

/** A fragment without values. */
export function raw(sqlText: string): Statement {
  return { sql: sqlText, params: [] }
}

/** Whether a statement only reads. One that begins with `WITH` may write and counts as writing. */
export function isRead(statement: Statement): boolean {
  return /^\s*SELECT\b/i.test(statement.sql)
}
