import { describe, expect, test } from 'vitest'
import { siege, SIEGE } from '../load/siege.ts'
import { slowStreams } from '../load/slow-streams.ts'
import { soak } from '../load/soak.ts'

/** Short forms of `npm run load`, `npm run soak` and `npm run siege`. */

describe('slow streams side by side', () => {
  test('all come to their end, each with a row and a receipt', { timeout: 120_000 }, async () => {
    const plan = { streams: 200, seconds: 6, customers: 20 }
    const { faults, ledger, concurrent } = await slowStreams(plan)
    expect(faults).toEqual([])
    expect(ledger).toMatchObject({ rows: 200, receipts: 200 })
    expect(concurrent).toBeGreaterThanOrEqual(200)
  })
})

describe('a mixed load with faults switched on', () => {
  test(
    'leaves a ledger that balances and no request in progress',
    { timeout: 120_000 },
    async () => {
      const plan = { minutes: 0.2, clients: 20, customers: 10, seed: 1 }
      const { faults, ledger } = await soak(plan)
      expect(faults).toEqual([])
      expect(ledger.rows).toBeGreaterThan(50)
      expect(ledger.receipts).toBeGreaterThan(50)
    },
  )
})

describe('a siege by customers, strangers and a provider', () => {
  test('leaves a well-behaved customer every row and receipt', { timeout: 180_000 }, async () => {
    const plan = { seconds: 5, attacks: SIEGE, decoy: false }
    const { faults, ledger, attacked, routerFaults } = await siege(plan)
    // The router's own counts show where a fault comes from.
    expect({ faults, routerFaults: faults.length > 0 ? routerFaults : [] }).toEqual({
      faults: [],
      routerFaults: [],
    })
    expect(attacked.service.answers).toBeGreaterThan(0)
    expect(ledger.rows).toBe(ledger.receipts)
  })
})
