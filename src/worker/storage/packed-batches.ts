import type { SqlValue, Statement } from './database.ts'

/** Batches in a call to a storage object. They use the same few statement texts, so each text is sent once. */
export interface PackedBatches {
  readonly texts: readonly string[]
  /** For each batch its statements: the index of the text, the parameters, and the customer of a write. */
  readonly batches: readonly (readonly PackedStatement[])[]
}

type PackedStatement = readonly [text: number, params: readonly SqlValue[], customerId?: string]

/** Packs batches, in order. */
export function packBatches(batches: readonly (readonly Statement[])[]): PackedBatches {
  const indexes = new Map<string, number>()
  const indexOf = (text: string) => {
    const known = indexes.get(text)
    if (known !== undefined) return known
    indexes.set(text, indexes.size)
    return indexes.size - 1
  }
  const packed = batches.map((statements) =>
    statements.map(({ sql, params, customerId }): PackedStatement =>
      customerId === undefined ? [indexOf(sql), params] : [indexOf(sql), params, customerId],
    ),
  )
  return { texts: [...indexes.keys()], batches: packed }
}

/** Restores the batches. */
export function unpackBatches({
  texts,
  batches,
}: PackedBatches): readonly (readonly Statement[])[] {
  return batches.map((statements) =>
    statements.map(([index, params, customerId]) => {
      const text = texts[index]
      if (text === undefined) throw new Error('internal error: a statement without its text')
      return { sql: text, params, ...(customerId !== undefined && { customerId }) }
    }),
  )
}
