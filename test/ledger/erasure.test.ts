import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLedger, type Ledger } from '../../src/ledger/ledger.ts'
import { LEDGER_FILE, LEDGER_PATHS } from '../../src/protocol/ledger-link.ts'
import { commitSettlement } from '../../src/worker/settle/ledger.ts'
import { ledgerStorage } from '../../src/worker/storage/ledger-storage.ts'
import { addCustomer, NOW, receiptOf, settlementOf } from '../support/ledger.ts'

const DAY_MS = 86_400_000

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cmr-test-erasure-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const open = () =>
  openLedger(join(directory, LEDGER_FILE), {
    now: Date.now,
    died: (error) => {
      throw error
    },
  })

/** The storage of a worker, with the link left out. */
function storageOf(ledger: Ledger) {
  const carry = async (path: string, body: Uint8Array) => {
    if (path === LEDGER_PATHS.write) return ledger.write(body)
    if (path === LEDGER_PATHS.lookUp) return ledger.lookUp(body)
    return path === LEDGER_PATHS.read ? ledger.read(body) : ledger.operate(body)
  }
  const fetch = async (url: string, init: RequestInit) => {
    const body = new Uint8Array(await new Response(init.body).arrayBuffer())
    const answer = await carry(new URL(url).pathname, body)
    return new Response(answer === null ? null : Uint8Array.from(answer))
  }
  return ledgerStorage({ fetch }, { now: Date.now, keepAlive: () => {} })
}

/** Which of the markers are in any file of the ledger, its write-ahead log and list of reservations too. */
async function leftInFiles(markers: readonly string[]): Promise<readonly string[]> {
  const names = await readdir(directory)
  const files = await Promise.all(names.map((name) => readFile(join(directory, name), 'latin1')))
  return markers.filter((marker) => files.some((file) => file.includes(marker)))
}

test('the ledger process keeps nothing of an expired body in any of its files, though nothing more is written', async () => {
  const first = await open()
  const db = storageOf(first).customer('acme')
  const key = await addCustomer(db, { billing: 'postpaid' })
  const numbers = Array.from({ length: 60 }, (_, i) => i)
  const settle = (i: number) => {
    const jws = `marker-${i}.`.repeat(20 + 25 * i)
    const expiresAtMs = i % 2 === 0 ? NOW + 1 : Date.now() + DAY_MS
    const receipt = { ...receiptOf(`receipt-${i}`, { expiresAtMs }), jws }
    return commitSettlement(db, settlementOf(key, `request-${i}`, { receipt }))
  }
  await Promise.all(numbers.map(settle))
  const markers = (rest: number) => numbers.filter((i) => i % 2 === rest).map((i) => `marker-${i}.`)
  expect(await leftInFiles(markers(0))).toEqual(markers(0))
  await first.close()

  const second = await open()
  await expect.poll(() => leftInFiles(markers(0)), { timeout: 60_000 }).toEqual([])
  expect(await leftInFiles(markers(1))).toEqual(markers(1))
  await second.close()
})
