import type { ComponentChildren } from 'preact'

export type Column<Row> = readonly [
  head: string,
  cell: (row: Row) => ComponentChildren,
  /** `number` aligns the column right; `long` wraps long text, so that the columns after it stay visible. */
  kind?: 'number' | 'long',
]

interface TableProps<Row> {
  readonly caption: string
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  readonly empty: string
  readonly keyOf: (row: Row) => string
}

/** A table; on a narrow screen each row becomes a card with the column titles beside its cells. */
export function Table<Row>({ caption, rows, columns, empty, keyOf }: TableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class="cards">
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(([head, , kind]) => (
              <th key={head} scope="col" data-kind={kind}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(([head, cell, kind], index) =>
                index === 0 ? (
                  <th key={head} scope="row" data-kind={kind}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={head} data-head={head} data-kind={kind}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
