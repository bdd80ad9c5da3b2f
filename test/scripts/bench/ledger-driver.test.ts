import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startLedgerAlone } from '../../../scripts/bench/ledger-alone.ts'
import { settledIn } from '../../../scripts/bench/ledger-answers.ts'
import { LedgerConnection } from '../../../scripts/bench/ledger-connection.ts'
import { makeLedgerKeys } from '../../../scripts/bench/ledger-keys.ts'
import { LedgerRequests, REQUESTS_PER_CALL } from '../../../scripts/bench/ledger-requests.ts'
import { measure } from '../../../scripts/bench/measure.ts'
import { LEDGER_KIND, WINDOWS } from '../../../scripts/bench/windows.ts'
import { LEDGER_PATHS } from '../../../src/protocol/ledger-link.ts'
import { packCalls } from '../../../src/worker/storage/packed-calls.ts'
import { startLedgerProcess } from '../../support/ledger-process.ts'

const KEYS = ['a', 'b'].map((customerId) => ({
  customerId,
  keyPrefix: `cmr_${customerId}`,
  keyHash: 'f'.repeat(64),
}))

test('each request is admitted in one call and settled in the next, and none is left at the end', () => {
  let made = 0
  const requests = new LedgerRequests(KEYS, 0, () => `id-${(made += 1)}`)
  const admitted = (calls: ReturnType<typeof requests.next>) =>
    calls.flatMap((call) => (call.kind === 'admit' ? [call.entry.requestId] : []))
  const settled = (calls: ReturnType<typeof requests.next>) =>
    calls.flatMap((call) => (call.kind === 'settle' ? [call.entry.requestId] : []))
  const [first, second, last] = [requests.next(1), requests.next(2), requests.last(3)]
  expect(admitted(first)).toHaveLength(REQUESTS_PER_CALL)
  expect(settled(first)).toEqual([])
  expect(settled(second)).toEqual(admitted(first))
  expect(settled(last)).toEqual(admitted(second))
  expect(admitted(last)).toEqual([])
  expect(requests.last(4)).toEqual([])
})

test('a ledger carries out every call, and a call with a refused operation is no success', async () => {
  const ledger = await startLedgerProcess()
  onTestFinished(() => ledger.stop())
  const connection = new LedgerConnection(ledger.link)
  onTestFinished(() => connection.close())
  const call = async (operations: ReturnType<LedgerRequests['next']>) =>
    settledIn(await connection.call(LEDGER_PATHS.operate, packCalls(operations)), operations)
  const keys = await makeLedgerKeys(ledger.link, 2)
  const requests = new LedgerRequests(keys, 0, randomUUID)
  expect(await call(requests.next(Date.now()))).toBe(0)
  expect(await call(requests.next(Date.now()))).toBe(REQUESTS_PER_CALL)
  expect(await call(requests.last(Date.now()))).toBe(REQUESTS_PER_CALL)
  const unknown = new LedgerRequests(KEYS, 0, randomUUID)
  await expect(call(unknown.next(Date.now()))).rejects.toThrow('an operation was refused')
}, 60_000)

test('a window of the ledger alone tells its CPU apart by thread', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'cmr-test-bench-'))
  onTestFinished(() => rmSync(scratch, { recursive: true, force: true }))
  const ledger = await startLedgerAlone(scratch, 2)
  onTestFinished(() => ledger.stop())
  const plan = { ...WINDOWS[LEDGER_KIND], connections: 2, warmMs: 0, windowMs: 500 }
  // In so short a window a machine that stands still completes nothing.
  const sample = await vi.waitFor(
    async () => {
      const measured = await measure(ledger, plan, noLoad)
      expect(measured.invalid).toBeNull()
      return measured
    },
    { timeout: 90_000 },
  )
  expect(Object.keys(sample.cpuUsBy)).toEqual(['writer thread', 'other threads'])
}, 120_000)

const noLoad = { run: () => Promise.reject(new Error('the system has a load of its own')) }
