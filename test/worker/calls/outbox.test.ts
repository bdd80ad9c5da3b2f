import { beforeEach, describe, expect, it } from 'vitest'
import { MESSAGE_KINDS, type LinkMessage } from '../../../src/protocol/link-messages.ts'
import { LATE_MS, Outbox } from '../../../src/worker/calls/outbox.ts'

const message = (id: number, head = ''): LinkMessage => ({
  kind: MESSAGE_KINDS.call,
  id,
  head,
  body: new Uint8Array(0),
})

let now: number
let outbox: Outbox

beforeEach(() => {
  now = 1_000
  outbox = new Outbox(() => now)
})

describe('what waits to be sent', () => {
  it('is taken in its order, and once', () => {
    expect([1, 2, 3].map((id) => outbox.push(message(id)))).toEqual([true, false, false])
    expect([outbox.isEmpty, outbox.ids()]).toEqual([false, [1, 2, 3]])
    expect(outbox.takeAll().map(({ id }) => id)).toEqual([1, 2, 3])
    expect([outbox.isEmpty, outbox.ids(), outbox.takeAll()]).toEqual([true, [], []])
    expect(outbox.push(message(4))).toBe(true)
  })

  it('gives the place of a message to another one, unless it is taken already', () => {
    outbox.push(message(1, 'one'))
    outbox.push(message(2, 'two'))
    expect(outbox.replace(1, message(1, 'other'))).toBe(true)
    expect(outbox.takeAll().map(({ head }) => head)).toEqual(['other', 'two'])
    expect(outbox.replace(2, message(2, 'other'))).toBe(false)
    expect(outbox.isEmpty).toBe(true)
  })

  it('is late after a quarter of a second, for as long as somebody has seen that', () => {
    outbox.push(message(1))
    now += LATE_MS - 1
    expect(outbox.seenLateMs()).toBeUndefined()
    now += 1
    expect(outbox.seenLateMs()).toBe(0)
    now += 500
    expect(outbox.seenLateMs()).toBe(500)
  })

  it('is late from when that is first seen, however long nothing ran before', () => {
    outbox.push(message(1))
    now += 3_600_000
    expect(outbox.seenLateMs()).toBe(0)
    now += 10
    expect(outbox.seenLateMs()).toBe(10)
  })

  it('counts from the first of several messages, and anew from the first after all were taken', () => {
    outbox.push(message(1))
    now += LATE_MS
    expect(outbox.seenLateMs()).toBe(0)
    outbox.push(message(2))
    now += 100
    expect(outbox.seenLateMs()).toBe(100)
    outbox.takeAll()
    outbox.push(message(3))
    expect(outbox.seenLateMs()).toBeUndefined()
    now += LATE_MS
    expect(outbox.seenLateMs()).toBe(0)
  })

  it('is late before there is anything, if nobody opens the connection', () => {
    now += LATE_MS
    expect(outbox.seenLateMs()).toBe(0)
  })

  it('counts from then on when the clock was set back', () => {
    outbox.push(message(1))
    now -= 60_000
    expect(outbox.seenLateMs()).toBe(0)
  })
})
