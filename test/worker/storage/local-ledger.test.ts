import { expect, test } from 'vitest'
import type { LedgerCall, LedgerOutcome } from '../../../src/worker/storage/ledger-calls.ts'
import { LocalLedger } from '../../../src/worker/storage/local-ledger.ts'

const releaseOf = (requestId: string): LedgerCall => ({ kind: 'release', requestId })
const RELEASED: LedgerOutcome = { ok: true, kind: 'release', released: true }
const NOT_HELD: LedgerOutcome = { ok: true, kind: 'release', released: false }

test('an object takes the very operations that were handed over to it, and each request gets its own outcomes', async () => {
  const local = new LocalLedger()
  const taken: (readonly LedgerCall[])[] = []
  const carryOut = async (ticket: number) => {
    const left = local.take(ticket)
    taken.push(left.calls)
    await Promise.resolve()
    left.outcomes = left.calls.map((call) => (call === first[0] ? RELEASED : NOT_HELD))
  }
  const first = [releaseOf('a')]
  const second = [releaseOf('b'), releaseOf('c')]
  const outcomes = await Promise.all([
    local.handOver(first, carryOut),
    local.handOver(second, carryOut),
  ])
  expect(outcomes).toEqual([[RELEASED], [NOT_HELD, NOT_HELD]])
  expect(taken[0]).toBe(first)
  expect(taken[1]).toBe(second)
})

test('what was handed over is taken once, and not after its call has failed', async () => {
  const local = new LocalLedger()
  const tickets: number[] = []
  const lost = new Error('the object is gone')
  const failing = local.handOver([releaseOf('a')], (ticket) => {
    tickets.push(ticket)
    return Promise.reject(lost)
  })
  await expect(failing).rejects.toBe(lost)
  const twice = local.handOver([releaseOf('b')], async (ticket) => {
    tickets.push(ticket)
    local.take(ticket).outcomes = [RELEASED]
    expect(() => local.take(ticket)).toThrow(new Error('internal error: no operations were left'))
  })
  expect(await twice).toEqual([RELEASED])
  for (const ticket of tickets) {
    expect(() => local.take(ticket)).toThrow(new Error('internal error: no operations were left'))
  }
})

test('outcomes of a call that fails after the object added them are not told, since they may not be committed', async () => {
  const local = new LocalLedger()
  const refused = new Error('the disk refused the write')
  const failing = local.handOver([releaseOf('a')], (ticket) => {
    local.take(ticket).outcomes = [RELEASED]
    return Promise.reject(refused)
  })
  await expect(failing).rejects.toBe(refused)
})

test('a call that ends without outcomes is an error, never an outcome', async () => {
  const unanswered = new LocalLedger().handOver([releaseOf('a')], async () => {})
  await expect(unanswered).rejects.toThrow(
    new Error('internal error: an object took no operations'),
  )
})
