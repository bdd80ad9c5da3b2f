import { beforeEach, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { Evidence, retainEvidence } from '../../../src/worker/settle/evidence.ts'
import { addCustomer } from '../../support/ledger.ts'
import { openSqlite, type SqliteDatabase } from '../../support/sqlite-database.ts'

const EXPIRES = 5000

let ledger: SqliteDatabase
let good: string
beforeEach(async () => {
  ledger = openSqlite()
  for (const id of ['acme', 'a', 'b']) await addCustomer(ledger, { id })
  good = await sha256Hex('evidence')
})

const held = () => ledger.connection.prepare('SELECT sha256, data_b64 FROM evidence').all()

test('evidence is kept as the bytes it was', async () => {
  const link = { evidence: async () => utf8('evidence') }
  const wanted = { customerId: 'acme', refs: [good], expiresAtMs: EXPIRES }
  expect(await retainEvidence({ evidence: new Evidence(link), ledger }, wanted)).toBe(0)
  expect(held()).toEqual([{ sha256: good, data_b64: 'ZXZpZGVuY2U=' }])
})

test.each([
  ['is no longer held by the daemon', async () => undefined],
  ['has another digest than the receipt says', async () => utf8('something else')],
  ['cannot be asked for', () => Promise.reject(new LinkUnavailable('away'))],
])('evidence that %s is reported missing and harms nothing', async (_, answer) => {
  const evidence = new Evidence({ evidence: answer })
  const wanted = { customerId: 'acme', refs: [good], expiresAtMs: EXPIRES }
  expect(await retainEvidence({ evidence, ledger }, wanted)).toBe(1)
  expect(held()).toEqual([])
})

test('the daemon is asked once for what many customers store, and again after it had none', async () => {
  let asked = 0
  const answers = [undefined, utf8('evidence')]
  const evidence = new Evidence({ evidence: async () => answers[asked++] })
  const retain = (customerId: string) =>
    retainEvidence({ evidence, ledger }, { customerId, refs: [good], expiresAtMs: EXPIRES })
  expect(await retain('a')).toBe(1)
  expect(await retain('a')).toBe(0)
  expect(await retain('b')).toBe(0)
  expect(asked).toBe(2)
  expect(held()).toHaveLength(2)
})

test('of more evidence than four million characters, what was used last is kept', async () => {
  const asked: string[] = []
  const pieces = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const sign of 'abc') {
    const text = sign.repeat(1_200_000)
    pieces.set(await sha256Hex(text), utf8(text))
  }
  const [a = '', b = '', c = ''] = pieces.keys()
  const nameOf = new Map([a, b, c].map((ref, index) => [ref, 'abc'[index]]))
  const evidence = new Evidence({
    evidence: async (ref) => {
      asked.push(nameOf.get(ref) ?? '')
      return pieces.get(ref)
    },
  })
  for (const ref of [a, b, a, c, a, b]) await evidence.base64Of(ref)
  expect(asked.join('')).toBe('abcb')
})
