import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openReservations, ReservationLog } from '../../src/ledger/reservation-log.ts'
import type { LedgerCall, LedgerOutcome } from '../../src/worker/storage/ledger-calls.ts'
import type { SettlementEntry } from '../../src/worker/storage/ledger-operations.ts'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-test-reservations-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const key = { customerId: 'acme', keyPrefix: 'k', keyHash: 'h' }
const TERMS = { key, plans: {}, reserveNano: { 0: '5' }, claim: null, expiresAt: 2, now: 1 }
const admission = (requestId: string): LedgerCall => ({
  kind: 'admit',
  entry: { ...TERMS, requestId },
})

const SETTLEMENT: Omit<SettlementEntry, 'requestId'> = {
  customerId: 'acme',
  keyPrefix: 'k',
  claim: null,
  usage: {
    model: 'nova/glm-5',
    modality: 'chat',
    provider: 'nova',
    region: null,
    billingUnit: 'token',
    audioSeconds: null,
    promptTokens: 1,
    completionTokens: 1,
    costNano: '5',
    discountPct: 0,
    usdEur: null,
    capped: false,
    failover: false,
    createdAtMs: 1,
  },
  receipt: null,
  answer: null,
  alertBelowNano: null,
}

const facts = {
  admitted: true,
  customerName: '',
  keyName: '',
  plan: 'standard',
  receiptRetentionDays: null,
  suspended: false,
  expiresAt: null,
  secretEndsAt: null,
  models: null,
  minAttestation: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  windowStartedAt: 0,
  windowRequests: 0,
  windowTokens: 0,
  isRepeat: false,
  overLimit: false,
  openRequests: 0,
}
const admitted: LedgerOutcome = { ok: true, kind: 'admit', facts }

test('a note that a full disk cuts short has failed, and spoils none before or after it', () => {
  const path = join(directory, 'reservations')
  let full = false
  const log = new ReservationLog(path, (file, bytes) =>
    writeSync(file, full ? bytes.subarray(0, 40) : bytes),
  )
  log.note([admission('before')], [admitted])
  full = true
  expect(() => log.note([admission('meanwhile')], [admitted])).toThrow(
    'the disk is full: SQLITE_FULL',
  )
  full = false
  log.note(
    [admission('after'), admission('refused')],
    [admitted, { ...admitted, facts: { ...facts, admitted: false } }],
  )
  expect(openReservations(path).map(({ requestId }) => requestId)).toEqual(['before', 'after'])
  log.note(
    [{ kind: 'release', requestId: 'before' }],
    [{ ok: true, kind: 'release', released: true }],
  )
  expect(openReservations(path).map(({ requestId }) => requestId)).toEqual(['after'])
  log.clear()
  expect(openReservations(path)).toEqual([])
  log.close()
})

test('a settlement that stored nothing ends a reservation; one that is settled needs no note', () => {
  const path = join(directory, 'settled')
  const log = new ReservationLog(path)
  const settlement = (requestId: string): LedgerCall => ({
    kind: 'settle',
    entry: { ...SETTLEMENT, requestId },
  })
  const ended = (outcome: 'settled' | 'claim_lost'): LedgerOutcome => ({
    ok: true,
    kind: 'settle',
    result: { outcome, missingEvidence: [] },
  })
  log.note([admission('lost'), admission('settled')], [admitted, admitted])
  const before = statSync(path).size
  log.note([settlement('settled')], [ended('settled')])
  expect(statSync(path).size).toBe(before)
  log.note([settlement('lost')], [ended('claim_lost')])
  expect(openReservations(path).map(({ requestId }) => requestId)).toEqual(['settled'])
  log.close()
})

test('a log that is closed is neither noted in nor cleared, and the file that has its descriptor then is left alone', () => {
  const path = join(directory, 'closed')
  const log = new ReservationLog(path)
  log.note([admission('open')], [admitted])
  log.close()
  const other = join(directory, 'other')
  const file = openSync(other, 'w')
  writeSync(file, 'of somebody else')
  log.clear()
  expect(() => log.note([admission('late')], [admitted])).toThrow('the ledger is closed')
  closeSync(file)
  expect(readFileSync(other, 'utf8')).toBe('of somebody else')
  expect(openReservations(path).map(({ requestId }) => requestId)).toEqual(['open'])
})
