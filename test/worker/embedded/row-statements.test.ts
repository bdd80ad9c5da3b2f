import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { rowDelete, rowInsert, rowUpdate } from '../../../src/worker/embedded/row-statements.ts'
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

const PAIRS = 'CREATE TABLE pairs (a TEXT, b INTEGER, x BIGINT, y INTEGER, PRIMARY KEY (a, b))'

function beginPairs(count: number) {
  const connection = new DatabaseSync(':memory:')
  connection.exec(PAIRS)
  const store = nodeStore(connection)
  const ids = Array.from({ length: count }, (_, id) => id)
  rowInsert('pairs', 'a, b, x, y')(
    store,
    ids.map((id) => ['one', id, '7', id]),
  )
  const rows = () =>
    connection
      .prepare('SELECT b, CAST(x AS TEXT) AS x, y FROM pairs ORDER BY b')
      .all()
      .map(({ b, x, y }) => [b, x, y])
  return { store, ids, rows }
}

const changePairs = rowUpdate('pairs', 'x, y', 'a, b')

test.each([0, 1, 2, 19, 20, 21, 45])('%i rows are changed, and no other row', (count) => {
  const { store, ids, rows } = beginPairs(50)
  const changed = ids.slice(0, count)
  changePairs(
    store,
    changed.toReversed().map((id) => ['9223372036854775807', null, 'one', id]),
  )
  expect(rows()).toEqual(
    ids.map((id) => (id < count ? [id, '9223372036854775807', null] : [id, '7', id])),
  )
})

test('changes of rows that do not exist do nothing', () => {
  const { store, ids, rows } = beginPairs(2)
  changePairs(store, [
    ['1', 1, 'other', 0],
    ['1', 1, 'one', 2],
  ])
  expect(rows()).toEqual(ids.map((id) => [id, '7', id]))
})

test.each([0, 1, 20, 21, 45])('%i rows are deleted, and no other row', (count) => {
  const { store, ids, rows } = beginPairs(50)
  rowDelete('pairs', 'b')(
    store,
    ids.slice(0, count).map((id) => [id]),
  )
  expect(rows()).toEqual(ids.slice(count).map((id) => [id, '7', id]))
})
