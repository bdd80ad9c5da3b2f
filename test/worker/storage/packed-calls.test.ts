import { describe, expect, test } from 'vitest'
import type { LedgerCall } from '../../../src/worker/storage/ledger-calls.ts'
import type {
  AdmissionEntry,
  SettlementEntry,
} from '../../../src/worker/storage/ledger-operations.ts'
import { packCalls, unpackCalls } from '../../../src/worker/storage/packed-calls.ts'

const plans = { standard: { discount_pct: 0, requests_per_minute: 60 } }
const ADMISSION: AdmissionEntry = {
  requestId: 'request-1',
  key: { customerId: 'acme', keyPrefix: 'cmr_1', keyHash: 'hash' },
  plans,
  reserveNano: { '0': '9007199254740993' },
  claim: null,
  expiresAt: 2,
  now: 1,
}
const SETTLEMENT: SettlementEntry = {
  requestId: 'request-2',
  customerId: 'acme',
  keyPrefix: 'cmr_1',
  claim: null,
  usage: {
    model: 'nova/"glm"\n5',
    modality: 'chat',
    provider: 'ñova',
    region: null,
    billingUnit: 'token',
    audioSeconds: null,
    promptTokens: 1,
    completionTokens: 1,
    costNano: '1234',
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
const admission = (requestId: string): LedgerCall => ({
  kind: 'admit',
  entry: { ...ADMISSION, requestId },
})
const settlement = (requestId: string): LedgerCall => ({
  kind: 'settle',
  entry: { ...SETTLEMENT, requestId },
})

describe('packed operations', () => {
  test('are restored in order, each settlement with the text of its entry', () => {
    const calls = [
      settlement('first'),
      admission('second'),
      { kind: 'release', requestId: 'third' } as const,
      { kind: 'find', key: ADMISSION.key } as const,
      admission('fourth'),
      settlement('fifth'),
    ]
    const restored = unpackCalls(packCalls(calls))
    expect(restored).toEqual(
      calls.map((call) =>
        call.kind === 'settle' ? { ...call, text: JSON.stringify(call.entry) } : call,
      ),
    )
  })

  test('have the time until which settlements are awaited, where it is given', () => {
    const [settled, admitted] = unpackCalls(packCalls([settlement('1'), admission('2')], 1_000))
    expect(settled).toMatchObject({ ...settlement('1'), until: 1_000 })
    expect(admitted).toEqual(admission('2'))
  })

  test('have plans that are the same once', () => {
    const packed = packCalls(['1', '2', '3'].map(admission))
    expect(packed.split('requests_per_minute')).toHaveLength(2)
  })

  test('are refused where a settlement lacks its entry, an admission its plans, or anything is no JSON', () => {
    const packed = packCalls([settlement('first'), settlement('second')])
    const [first = '', ...entries] = packed.split('\n')
    expect(() => unpackCalls([first, entries[0]].join('\n'))).toThrow(
      'internal error: a settlement without its entry',
    )
    const withoutPlans = packCalls([admission('first')]).replace('"plans":0', '"plans":1')
    expect(() => unpackCalls(withoutPlans)).toThrow(
      'internal error: an admission without its plans',
    )
    expect(() => unpackCalls('')).toThrow('Unexpected end of JSON input')
    expect(() => unpackCalls(packed.slice(0, -1))).toThrow(SyntaxError)
  })
})
