import type postgres from 'postgres'
import { describe, expect, it, vi } from 'vitest'
import type { PoolUser } from '../../../src/worker/storage/connection-pool.ts'
import type { LedgerItem } from '../../../src/worker/storage/postgres-calls.ts'
import { createPostgresLedger } from '../../../src/worker/storage/postgres-ledger.ts'
import { RowWaits } from '../../../src/worker/storage/row-waits.ts'

interface Call {
  readonly owner: string
  readonly customers: readonly string[]
  readonly lockMs: number
  readonly waits: boolean | undefined
}

const DEADLINE_MS = 9_000

/** How long who waits for a row alone waits for it: the database answers before our own time is up. */
const ALONE_MS = DEADLINE_MS - 250

/** A ledger before a database whose every call is answered by `answer`, which throws or waits as the database would. */
function startLedger(answer: (call: Call) => Promise<void>, now: () => number = () => 0) {
  const calls: Call[] = []
  const connectionOf = ({ owner, waits }: PoolUser) => {
    const execute = async (params: readonly unknown[]) => {
      const rounds: { entries: { customer: string }[] }[] = JSON.parse(String(params[0]))
      const customers = rounds.flatMap(({ entries }) => entries.map(({ customer }) => customer))
      const call = { owner, customers, lockMs: Number(params[1]), waits }
      calls.push(call)
      await answer(call)
      return customers.map((customer) => ({ answer: `"${customer}"` }))
    }
    const unsafe = (_text: string, params: readonly unknown[]) => ({
      execute: () => execute(params),
    })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this member of the driver is used
    const sql = { unsafe } as unknown as postgres.Sql
    return { sql, discard: () => {}, isAlive: async () => true }
  }
  const ledger = createPostgresLedger({
    onConnection: (user, deadline, work) =>
      Promise.race([work(connectionOf(user)), deadline.passed]),
    rows: new RowWaits(),
    idleMs: DEADLINE_MS,
    deadlineMs: DEADLINE_MS,
    now,
  })
  return { ledger, calls }
}

const itemOf = (customerId: string): LedgerItem => ({
  customerId,
  plans: null,
  entry: JSON.stringify({ customer: customerId }),
})
const items = (...customers: readonly string[]) => customers.map(itemOf)
const answered = (customer: string) => ({ ok: true, answer: `"${customer}"` })
const failure = (code: string) => Object.assign(new Error('failed'), { code })

describe('calls of the ledger functions', () => {
  it('carry out all operations in one, and answer them in order', async () => {
    const { ledger, calls } = startLedger(async () => {})
    const answers = await ledger.together('settle', items('a', 'b', 'a'))
    expect(answers).toEqual([answered('a'), answered('b'), answered('a')])
    expect(calls).toEqual([
      { owner: 'function settle', customers: ['a', 'b', 'a'], lockMs: 250, waits: undefined },
    ])
  })

  it('go on without whose row stays locked; it waits alone, and its customer joins no others until then', async () => {
    const unlock = Promise.withResolvers<void>()
    const { ledger, calls } = startLedger(async ({ customers, lockMs }) => {
      if (!customers.includes('held')) return
      if (lockMs < ALONE_MS) throw failure('55P03')
      await unlock.promise
    })
    expect(await ledger.together('admit', items('held', 'free'))).toEqual([
      { locked: true },
      answered('free'),
    ])
    expect(calls).toEqual([
      { owner: 'function admit', customers: ['held', 'free'], lockMs: 250, waits: undefined },
      { owner: 'function admit', customers: ['held'], lockMs: 1, waits: undefined },
      { owner: 'function admit', customers: ['free'], lockMs: 1, waits: undefined },
    ])
    const alone = ledger.alone('admit', itemOf('held'))
    expect(await ledger.together('admit', items('other', 'held'))).toEqual([
      answered('other'),
      { locked: true },
    ])
    expect(calls.slice(3)).toEqual([
      { owner: 'held', customers: ['held'], lockMs: ALONE_MS, waits: true },
      { owner: 'function admit', customers: ['other'], lockMs: 250, waits: undefined },
    ])
    unlock.resolve()
    expect(await alone).toEqual(answered('held'))
    await ledger.together('admit', items('held', 'free'))
    expect(calls[5]?.customers).toEqual(['held', 'free'])
  })

  it('of a customer whose row is locked wait for one of them on no connection, and join all others after it', async () => {
    const unlock = Promise.withResolvers<void>()
    const { ledger, calls } = startLedger(async ({ customers, lockMs }) => {
      if (customers.includes('held') && lockMs === ALONE_MS) await unlock.promise
    })
    const first = ledger.alone('admit', itemOf('held'))
    const later = [ledger.alone('settle', itemOf('held')), ledger.alone('settle', itemOf('held'))]
    const other = await ledger.alone('release', itemOf('other'))
    expect(other).toEqual(answered('other'))
    expect(calls.map(({ owner }) => owner)).toEqual(['held', 'other'])
    unlock.resolve()
    for (const end of [first, ...later]) expect(await end).toEqual(answered('held'))
    const joined = {
      owner: 'function settle',
      customers: ['held'],
      lockMs: 250,
      waits: undefined,
    }
    expect(calls.slice(2)).toEqual([joined, joined])
  })

  it('of a customer whose row stays locked wait for it one after another, in no call with others, none longer than an operation may take', async () => {
    vi.useFakeTimers()
    try {
      const { ledger, calls } = startLedger(async ({ lockMs }) => {
        await new Promise((resolve) => setTimeout(resolve, lockMs))
        throw failure('55P03')
      }, Date.now)
      const first = ledger.alone('admit', itemOf('held'))
      await vi.advanceTimersByTimeAsync(1_000)
      const second = ledger.alone('admit', itemOf('held'))
      await vi.advanceTimersByTimeAsync(ALONE_MS - 1_000)
      expect(await first).toMatchObject({ ok: false, unavailable: true })
      await vi.advanceTimersByTimeAsync(1_000)
      expect(await second).toMatchObject({ ok: false, unavailable: true })
      expect(calls.map(({ lockMs }) => lockMs)).toEqual([ALONE_MS, 1_000])
    } finally {
      vi.useRealTimers()
    }
  })

  it('that wait for a row wait no longer than an operation may take, also where their connection is lost at its end', async () => {
    vi.useFakeTimers()
    try {
      const { ledger, calls } = startLedger(async () => {
        await new Promise((resolve) => setTimeout(resolve, DEADLINE_MS - 1))
        throw failure('CONNECTION_CLOSED')
      }, Date.now)
      const first = ledger.alone('admit', itemOf('held'))
      await vi.advanceTimersByTimeAsync(DEADLINE_MS)
      expect(await first).toEqual({
        ok: false,
        unavailable: true,
        message: `the database did not answer within ${DEADLINE_MS} ms`,
      })
      // The second try waits for the row only for what is left of the time.
      expect(calls.map(({ lockMs }) => lockMs)).toEqual([ALONE_MS, 1])
      // Nobody of the customer waits any more, so the next one joins all others.
      void ledger.together('admit', items('held'))
      expect(calls.at(-1)).toMatchObject({ owner: 'function admit', customers: ['held'] })
    } finally {
      vi.useRealTimers()
    }
  })

  it('go apart in halves, one after the other, so that few calls find the one that is locked', async () => {
    const open: string[][] = []
    const { ledger, calls } = startLedger(async ({ customers }) => {
      expect(open).toEqual([])
      open.push([...customers])
      await Promise.resolve()
      open.pop()
      if (customers.includes('17')) throw failure('55P03')
    })
    const all = Array.from({ length: 128 }, (_, index) => String(index))
    const answers = await ledger.together('settle', items(...all))
    expect(answers).toEqual(all.map((id) => (id === '17' ? { locked: true } : answered(id))))
    expect(calls).toHaveLength(15)
  })

  it('go apart where one is refused, which alone fails', async () => {
    const { ledger } = startLedger(async ({ customers }) => {
      if (customers.includes('bad')) throw failure('23514')
    })
    expect(await ledger.together('settle', items('a', 'bad', 'b'))).toEqual([
      answered('a'),
      { ok: false, unavailable: false, message: 'failed: SQLSTATE 23514' },
      answered('b'),
    ])
  })

  it('are tried on further connections where one is lost, and then unavailable', async () => {
    const { ledger, calls } = startLedger(async ({ customers }) => {
      const tries = calls.length
      if (customers.includes('gone') || tries < 3) throw failure('CONNECTION_CLOSED')
    })
    expect(await ledger.together('release', items('a'))).toEqual([answered('a')])
    expect(calls).toHaveLength(3)
    expect(await ledger.together('release', items('gone'))).toEqual([
      { ok: false, unavailable: true, message: 'failed' },
    ])
    expect(calls).toHaveLength(6)
  })
})
