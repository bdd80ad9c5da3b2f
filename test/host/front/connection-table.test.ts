import { beforeEach, describe, expect, test } from 'vitest'
import { ConnectionTable, type Connection } from '../../../src/host/front/connection-table.ts'

let seconds = 0
let closed: string[] = []
let table: ConnectionTable<Connection & { readonly name: string }>

const LIMITS = { connections: 6, relayed: 3, perSource: 4 }

beforeEach(() => {
  seconds = 0
  closed = []
  table = new ConnectionTable(LIMITS, () => seconds)
})

function connection(name: string, source = name) {
  return { name, source, openedAt: seconds, close: () => void closed.push(name) }
}

/** Comes in, and as far as the stage. */
function comes(name: string, source?: string, stage?: 'handshaking' | 'established') {
  const one = connection(name, source)
  const added = table.add(one)
  return { one, in: added && (stage === undefined || table.move(one, stage)) }
}

describe('when there are as many connections as may be', () => {
  test('the oldest that never sent a byte makes room', () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) comes(name)
    expect(comes('g').in).toBe(true)
    expect(closed).toEqual(['a'])
    expect(table.size).toBe(6)
  })

  test('one that the worker serves does not, and the newcomer is refused', () => {
    table = new ConnectionTable({ ...LIMITS, connections: 3 }, () => seconds)
    for (const name of ['a', 'b', 'c']) comes(name, name, 'established')
    seconds = 1_000
    expect(comes('d').in).toBe(false)
    expect(closed).toEqual([])
    expect(table.takePressure()).toEqual({ refused: 1, closed: 0 })
  })
})

describe('when the worker has as many as it can carry', () => {
  test('one that does not end its handshake makes room, once it has had time for it', () => {
    comes('a', 'a', 'established')
    comes('b', 'b', 'handshaking')
    comes('c', 'c', 'established')
    expect(comes('d', 'd', 'established').in).toBe(false)
    seconds = 3
    expect(comes('e', 'e', 'established').in).toBe(true)
    expect(closed).toEqual(['b'])
    expect(table.relayed).toBe(3)
  })
})

describe('sources that take all they can get', () => {
  beforeEach(() => {
    table = new ConnectionTable({ connections: 100, relayed: 20, perSource: 9 }, () => seconds)
  })

  /** Opens connections until one is refused. */
  function takeAll(source: string, stage: 'handshaking' | 'established'): number {
    let taken = 0
    while (comes(`${source}${taken}`, source, stage).in) taken += 1
    return taken
  }

  test.each(['handshaking', 'established'] as const)(
    'leave room for the next one (%s)',
    (stage) => {
      const taken = ['a', 'b', 'c', 'd', 'e'].map((source) => takeAll(source, stage))
      expect(taken).toEqual([9, 6, 3, 1, 1])
      expect(closed).toEqual([])
      table = new ConnectionTable({ connections: 100, relayed: 20, perSource: 9 }, () => seconds)
      // One after another in turn, as they come in a flood, each gets the same.
      const sources = ['a', 'b', 'c', 'd', 'e', 'f']
      const got = sources.map(() => 0)
      for (let round = 0; round < 9; round++) {
        for (const [index, source] of sources.entries()) {
          if (comes(`${source}${round}`, source, stage).in) got[index] = (got[index] ?? 0) + 1
        }
      }
      expect(got).toEqual([3, 3, 3, 3, 3, 3])
      expect(comes('newcomer', 'newcomer', stage).in).toBe(true)
    },
  )

  test('close their own late handshakes for their next ones', () => {
    expect(takeAll('a', 'handshaking')).toBe(9)
    expect(takeAll('b', 'handshaking')).toBe(6)
    seconds = 3
    expect(comes('next', 'b', 'handshaking').in).toBe(true)
    expect(closed).toEqual(['b0'])
  })

  test('may take all where the operator allows one source half of it or more', () => {
    table = new ConnectionTable({ connections: 100, relayed: 20, perSource: 100 }, () => seconds)
    expect(takeAll('proxy', 'established')).toBe(20)
  })
})

describe('one source', () => {
  test('has its own bound, and makes room for itself alone', () => {
    comes('other', 'b')
    for (const name of ['1', '2', '3', '4', '5']) expect(comes(name, 'a').in).toBe(true)
    expect(closed).toEqual(['1'])
    expect(table.size).toBe(5)
  })

  test('is refused when all it has is served, while others come in', () => {
    table = new ConnectionTable({ ...LIMITS, relayed: 6 }, () => seconds)
    for (const name of ['1', '2', '3', '4']) comes(name, 'a', 'established')
    expect(comes('5', 'a').in).toBe(false)
    expect(comes('6', 'b', 'established').in).toBe(true)
    expect(closed).toEqual([])
  })

  test('may come again when one of its connections has ended', () => {
    table = new ConnectionTable({ ...LIMITS, relayed: 6 }, () => seconds)
    const [first] = ['1', '2', '3', '4'].map((name) => comes(name, 'a', 'established').one)
    if (first) table.remove(first)
    expect(comes('5', 'a').in).toBe(true)
  })
})

describe('time', () => {
  test('ends a connection that says nothing, and a handshake that does not end', () => {
    comes('silent')
    comes('handshaking', 'h', 'handshaking')
    comes('served', 's', 'established')
    seconds = 14
    table.closeExpired()
    expect(closed).toEqual([])
    seconds = 15
    table.closeExpired()
    expect(closed).toEqual(['handshaking'])
    seconds = 30
    table.closeExpired()
    expect(closed).toEqual(['handshaking', 'silent'])
    seconds = 100_000
    table.closeExpired()
    expect(table.size).toBe(1)
  })

  test('for a handshake begins when a worker has it, however long its client waited for one', () => {
    const { one } = comes('waiting')
    seconds = 20
    table.move(one, 'handshaking')
    table.closeExpired()
    seconds = 34
    table.closeExpired()
    expect(closed).toEqual([])
    seconds = 35
    table.closeExpired()
    expect(closed).toEqual(['waiting'])
  })

  test('to make room for others likewise', () => {
    const waited = ['a', 'b', 'c'].map((name) => comes(name, name).one)
    seconds = 20
    for (const one of waited) table.move(one, 'handshaking')
    expect(comes('d', 'd', 'handshaking').in).toBe(false)
    seconds = 23
    expect(comes('e', 'e', 'handshaking').in).toBe(true)
    expect(closed).toEqual(['a'])
  })
})

describe('a connection', () => {
  test('that no worker took is held again, and relayed when there is one', () => {
    const { one } = comes('a', 'a', 'established')
    expect(table.move(one, 'held')).toBe(true)
    expect([table.size, table.relayed]).toEqual([1, 0])
    expect(table.move(one, 'handshaking')).toBe(true)
    expect(table.move(one, 'established')).toBe(true)
    expect([table.size, table.relayed]).toEqual([1, 1])
  })

  test('that has been closed does not come back', () => {
    const { one } = comes('a')
    table.remove(one)
    expect(table.move(one, 'established')).toBe(false)
    expect(table.size).toBe(0)
  })
})
