import { describe, expect, test } from 'vitest'
import { ReceiptHeads } from '../../../src/worker/settle/receipt-heads.ts'
import { StorageUnavailable, type Statement } from '../../../src/worker/storage/database.ts'
import { storedJws, wholeJws } from '../../../src/worker/storage/stored-jws.ts'
import { NOW } from '../../support/ledger.ts'
import { openSqlite } from '../../support/sqlite-database.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const headOf = (digit: string) => ({ sha256: digit.repeat(64), text: `head ${digit}` })

/** A database that counts its writes and can be away. */
function opened() {
  const sqlite = openSqlite()
  const state = { now: NOW, writes: 0, away: false }
  const batch = (statements: readonly Statement[]) => {
    state.writes += 1
    if (state.away) throw new StorageUnavailable('away')
    return sqlite.batch(statements)
  }
  const heads = new ReceiptHeads({ directory: () => ({ batch }) }, () => state.now)
  const rows = () =>
    sqlite.connection.prepare('SELECT sha256, expires_at FROM receipt_heads ORDER BY sha256').all()
  return { heads, state, rows, connection: sqlite.connection }
}

describe('the heads of receipts', () => {
  test('are written once for all receipts that expire in the same hour or earlier', async () => {
    const { heads, state, rows } = opened()
    for (const expiry of [NOW + DAY_MS, NOW + DAY_MS - HOUR_MS, NOW + DAY_MS]) {
      await heads.remember(headOf('a'), expiry)
    }
    expect(state.writes).toBe(1)
    await heads.remember(headOf('b'), NOW + DAY_MS)
    expect(state.writes).toBe(2)
    expect(rows()).toEqual(
      ['a', 'b'].map((digit) => ({ sha256: digit.repeat(64), expires_at: NOW + DAY_MS })),
    )
  })

  test('are kept longer for a receipt that expires later, and never shorter', async () => {
    const { heads, rows } = opened()
    for (const days of [2, 5, 1, 3]) {
      await heads.remember(headOf('a'), NOW + days * DAY_MS + 1)
    }
    expect(rows()).toEqual([{ sha256: 'a'.repeat(64), expires_at: NOW + 5 * DAY_MS + HOUR_MS }])
  })

  test('come back within a minute to a database that lost them', async () => {
    const { heads, state, rows, connection } = opened()
    await heads.remember(headOf('a'), NOW + DAY_MS)
    connection.exec('DELETE FROM receipt_heads')
    state.now += 60_000
    await heads.remember(headOf('a'), NOW + DAY_MS)
    expect(rows()).toHaveLength(1)
  })

  test('are not taken for stored while the storage is away', async () => {
    const { heads, state, rows } = opened()
    state.away = true
    await expect(heads.remember(headOf('a'), NOW + DAY_MS)).rejects.toThrow(
      new StorageUnavailable('away'),
    )
    state.away = false
    await heads.remember(headOf('a'), NOW + DAY_MS)
    expect(rows()).toHaveLength(1)
  })

  test('hold up no receipt where only their confirmation fails, and are confirmed by the next', async () => {
    const { heads, state } = opened()
    await heads.remember(headOf('a'), NOW + DAY_MS)
    state.now += 60_000
    state.away = true
    await heads.remember(headOf('a'), NOW + DAY_MS)
    expect(state.writes).toBe(2)
    state.away = false
    for (let receipt = 0; receipt < 2; receipt++) {
      await heads.remember(headOf('a'), NOW + DAY_MS)
    }
    expect(state.writes).toBe(3)
    state.away = true
    await expect(heads.remember(headOf('a'), NOW + 2 * DAY_MS)).rejects.toThrow(
      new StorageUnavailable('away'),
    )
  })

  test('are asked for again where there are more than memory keeps', async () => {
    const { heads, state } = opened()
    for (let index = 0; index <= 1_000; index++) {
      const sha256 = index.toString(16).padStart(64, '0')
      await heads.remember({ sha256, text: '' }, NOW + DAY_MS)
    }
    await heads.remember({ sha256: '1'.padStart(64, '0'), text: '' }, NOW + DAY_MS)
    expect(state.writes).toBe(1_001)
    await heads.remember({ sha256: '0'.padStart(64, '0'), text: '' }, NOW + DAY_MS)
    expect(state.writes).toBe(1_002)
  })
})

describe('the stored form of a receipt', () => {
  test('is put together to the very text', () => {
    expect(wholeJws(storedJws('a'.repeat(64), 'tail.sig'), 'eyJ.head')).toBe('eyJ.headtail.sig')
  })

  test.each(['eyJhbGciOiJFUzI1NiJ9.e30.c2ln', `eyJ${'a'.repeat(100)}.e30.c2ln`])(
    'of one that is stored whole is itself: %s',
    (jws) => {
      expect(wholeJws(jws, null)).toBe(jws)
    },
  )

  test('is no receipt without its head', () => {
    expect(() => wholeJws(storedJws('a'.repeat(64), 'tail.sig'), null)).toThrow(
      'internal error: a stored receipt whose head is missing',
    )
  })
})
