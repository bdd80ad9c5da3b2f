import { beforeEach, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { retainEvidence } from '../../../src/worker/settle/evidence.ts'
import { openSqlite, type SqliteDatabase } from '../../support/sqlite-database.ts'

const EXPIRES = 5000

let ledger: SqliteDatabase
let good: string
beforeEach(async () => {
  ledger = openSqlite()
  good = await sha256Hex('evidence')
})

const held = () => ledger.connection.prepare('SELECT sha256, data_b64 FROM evidence').all()

test('evidence is kept as the bytes it was', async () => {
  const link = { evidence: async () => utf8('evidence') }
  const wanted = { customerId: 'acme', refs: [good], expiresAtMs: EXPIRES }
  expect(await retainEvidence({ link, ledger }, wanted)).toBe(0)
  expect(held()).toEqual([{ sha256: good, data_b64: 'ZXZpZGVuY2U=' }])
})

test.each([
  ['is no longer held by the daemon', async () => undefined],
  ['has another digest than the receipt says', async () => utf8('something else')],
  ['cannot be asked for', () => Promise.reject(new LinkUnavailable('away'))],
])('evidence that %s is reported missing and harms nothing', async (_, evidence) => {
  const wanted = { customerId: 'acme', refs: [good], expiresAtMs: EXPIRES }
  expect(await retainEvidence({ link: { evidence }, ledger }, wanted)).toBe(1)
  expect(held()).toEqual([])
})
