import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { rowInsert } from '../../../src/worker/embedded/row-insert.ts'
import { nodeStore } from '../../support/sqlite-store.ts'

/** 40 columns of 100 parameters: two rows in a statement. */
const COLUMNS = Array.from({ length: 40 }, (_, index) => `c${index}`).join(', ')

function begin() {
  const connection = new DatabaseSync(':memory:')
  connection.exec(`CREATE TABLE wide (${COLUMNS}, PRIMARY KEY (c0))`)
  const texts: string[] = []
  const store = nodeStore(connection)
  const run: typeof store.run = (sql, params) => {
    texts.push(sql)
    return store.run(sql, params)
  }
  const rows = () =>
    connection
      .prepare('SELECT c0, c39 FROM wide ORDER BY rowid')
      .all()
      .map(({ c0, c39 }) => [c0, c39])
  return { store: { ...store, run }, texts, rows }
}

const rowOf = (id: number) => [id, ...Array.from({ length: 38 }, () => null), `last ${id}`]

test.each([0, 1, 2, 3, 4, 5])('%i rows are inserted in their order', (count) => {
  const { store, texts, rows } = begin()
  const ids = Array.from({ length: count }, (_, id) => id)
  rowInsert('wide', COLUMNS)(store, ids.map(rowOf))
  expect(rows()).toEqual(ids.map((id) => [id, `last ${id}`]))
  expect(texts).toHaveLength(Math.ceil(count / 2))
})

test('a row that the table does not take fails the transaction, of which nothing stays', async () => {
  const { store, rows } = begin()
  const insert = rowInsert('wide', COLUMNS)
  const work = () => insert(store, [1, 2, 3, 3].map(rowOf))
  await expect(store.transact(work)).rejects.toThrow('UNIQUE constraint failed: wide.c0')
  expect(rows()).toEqual([])
})
