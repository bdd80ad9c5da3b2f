import { statSync, truncateSync } from 'node:fs'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { openForWriting } from '../../src/ledger/sqlite-file.ts'

test('a row that is deleted, or grows and moves, leaves no bytes in the file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'cmr-test-sqlite-file-'))
  try {
    const path = join(directory, 'a.sqlite')
    const file = openForWriting(path)
    file.run('CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT, more TEXT)', [])
    const insert = "INSERT INTO names (id, name, more) VALUES (?, ?, '')"
    for (let id = 0; id < 9; id++) file.run(insert, [id, `the-name-of-${id}`])
    file.run("UPDATE names SET more = 'longer than before' WHERE id = 4", [])
    file.run("UPDATE names SET name = '0' WHERE id = 4", [])
    file.run('DELETE FROM names WHERE id = 6', [])
    file.emptyLog()
    file.close()
    const bytes = await readFile(path, 'latin1')
    const left = Array.from({ length: 9 }, (_, id) => id).filter((id) =>
      bytes.includes(`name-of-${id}`),
    )
    expect(left).toEqual([0, 1, 2, 3, 5, 7, 8])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('a page that is freed keeps no copy of the rows that left it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'cmr-test-sqlite-file-'))
  try {
    const path = join(directory, 'a.sqlite')
    const file = openForWriting(path)
    file.run('CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT)', [])
    const nameOf = (id: number) => `the-name-of-${id}.`.padEnd(100, 'x')
    for (let id = 0; id < 400; id++)
      file.run('INSERT INTO names (id, name) VALUES (?, ?)', [id, nameOf(id)])
    // Few are left in each page, which SQLite then joins.
    file.run('DELETE FROM names WHERE id % 8 > 0', [])
    file.run("UPDATE names SET name = printf('%.*c', LENGTH(name), '0')", [])
    file.emptyLog()
    file.close()
    const bytes = await readFile(path, 'latin1')
    const left = Array.from({ length: 400 }, (_, id) => `the-name-of-${id}.`)
    expect(left.filter((name) => bytes.includes(name))).toEqual([])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('a transaction that changes some megabytes writes each page once, when it is committed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'cmr-test-sqlite-file-'))
  try {
    const path = join(directory, 'a.sqlite')
    const file = openForWriting(path)
    file.run('CREATE TABLE pages (id INTEGER PRIMARY KEY, filler TEXT)', [])
    const sizeOfLog = () => statSync(`${path}-wal`).size
    const before = sizeOfLog()
    const during = await file.transact(() => {
      // Each row fills a page of 4,096 bytes.
      for (let row = 0; row < 2_000; row++)
        file.run('INSERT INTO pages (filler) VALUES (?)', ['x'.repeat(4_000)])
      return sizeOfLog()
    })
    const after = sizeOfLog()
    file.close()
    expect(during).toBe(before)
    expect(after).toBeGreaterThan(2_000 * 4_096)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('the write-ahead log is used anew after sixteen MiB', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'cmr-test-sqlite-file-'))
  try {
    const path = join(directory, 'a.sqlite')
    const file = openForWriting(path)
    file.run('CREATE TABLE pages (id INTEGER PRIMARY KEY, filler TEXT)', [])
    const sizes: number[] = []
    for (let commit = 0; commit < 24; commit++) {
      // Each row fills a page of 4,096 bytes.
      const insert = () => {
        for (let row = 0; row < 400; row++)
          file.run('INSERT INTO pages (filler) VALUES (?)', ['x'.repeat(4_000)])
      }
      await file.transact(insert)
      sizes.push((await stat(`${path}-wal`)).size)
    }
    file.close()
    const largest = Math.max(...sizes) / (1024 * 1024)
    expect(largest).toBeGreaterThan(15)
    expect(largest).toBeLessThan(20)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('a file that another process makes smaller with VACUUM goes on, and one that is cut short does not, with a log or without', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'cmr-test-sqlite-file-'))
  try {
    const path = join(directory, 'a.sqlite')
    const file = openForWriting(path)
    file.run('CREATE TABLE pages (id INTEGER PRIMARY KEY, filler TEXT)', [])
    const fill = (rows: number) =>
      file.transact(() => {
        for (let row = 0; row < rows; row++)
          file.run('INSERT INTO pages (filler) VALUES (?)', ['x'.repeat(4_000)])
      })
    await fill(50)
    file.run('DELETE FROM pages WHERE id > 10', [])
    file.emptyLog()
    const before = statSync(path).size
    file.snapshot(() => {})
    const other = new DatabaseSync(path)
    other.exec('VACUUM')
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    other.close()
    const { size } = statSync(path)
    expect(size).toBeLessThan(before)
    await fill(1)
    file.emptyLog()
    await fill(1)
    const short = 'the file of the database was cut short: SQLITE_CORRUPT'
    truncateSync(path, 2 * 4_096)
    await expect(fill(1)).rejects.toThrow(short)
    truncateSync(path, 0)
    await expect(fill(1)).rejects.toThrow(short)
    expect(() => file.snapshot(() => {})).toThrow(short)
    expect(() => file.emptyLog()).toThrow(short)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
