import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { after } from '../../../src/worker/batching/deadline-timer.ts'
import { JoinedSends } from '../../../src/worker/completion/joined-sends.ts'
import { JoinWindow } from '../../../src/worker/stream/join-window.ts'
import { ownTimers } from '../../support/own-timers.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** The sends of one of `streams` streams, of which 1,000 chunks a second are written. */
function opened(streams: number, take: () => Promise<void> = () => Promise.resolve()) {
  const window = new JoinWindow(Date.now, 1_000)
  const sent: string[] = []
  const send = (events: Uint8Array) => {
    sent.push(fromUtf8(events))
    return take()
  }
  for (let i = 1; i < streams; i += 1) window.enter({ arrivedAt: Date.now() })
  return { sends: new JoinedSends({ send }, window, after), sent }
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

test('with few streams every chunk is sent at once', async () => {
  const { sends, sent } = opened(3)
  for (const text of ['a', 'b', 'c']) await sends.send(utf8(text))
  expect(sent).toEqual(['a', 'b', 'c'])
})

test('with many, what comes within the window waits for the first chunk after it', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await pass(8)
  await sends.send(utf8('b'))
  await pass(8)
  await sends.send(utf8('c'))
  expect(sent).toEqual(['a'])
  await pass(8)
  await sends.send(utf8('d'))
  expect(sent).toEqual(['a', 'bcd'])
})

test('a stream that has sent nothing for a window sends at once', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await pass(20)
  await sends.send(utf8('b'))
  expect(sent).toEqual(['a', 'b'])
})

test('where nothing more comes, what waits is sent after a second window', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await pass(8)
  await sends.send(utf8('b'))
  await pass(31)
  expect(sent).toEqual(['a'])
  await pass(1)
  expect(sent).toEqual(['a', 'b'])
})

test('nothing waits for longer than a quarter of a second', async () => {
  const { sends, sent } = opened(240)
  await sends.send(utf8('a'))
  await pass(1)
  await sends.send(utf8('b'))
  await pass(249)
  expect(sent).toEqual(['a'])
  await pass(1)
  expect(sent).toEqual(['a', 'b'])
})

test('once what waited has been sent, no timer is left to fire for nothing', async () => {
  const timers = ownTimers()
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await sends.send(utf8('b'))
  expect(timers.left()).toBe(1)
  await pass(20)
  await sends.send(utf8('c'))
  expect(sent).toEqual(['a', 'bc'])
  expect(timers.left()).toBe(0)
})

test('what must not wait is sent with all that waits, in order', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await sends.send(utf8('b'))
  await sends.sendNow(utf8('c'))
  await pass(100)
  expect(sent).toEqual(['a', 'bc'])
})

test('a stream holds at most 16 KiB back', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await sends.send(utf8('b'.repeat(16 * 1024)))
  expect(sent).toEqual(['a'])
  await sends.send(utf8('c'))
  expect(sent).toEqual(['a', `${'b'.repeat(16 * 1024)}c`])
})

test('chunks without events send nothing and wait for nothing', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await sends.send(utf8(''))
  await pass(20)
  await sends.send(utf8(''))
  await sends.sendNow(utf8(''))
  expect(sent).toEqual(['a'])
})

test('while the client has not taken what the timer sent, no further chunk is read', async () => {
  const taken = Promise.withResolvers<void>()
  let isSlow = false
  const { sends, sent } = opened(20, () => (isSlow ? taken.promise : Promise.resolve()))
  await sends.send(utf8('a'))
  isSlow = true
  await sends.send(utf8('b'))
  await pass(40)
  expect(sent).toEqual(['a', 'b'])
  let mayRead = false
  void sends.send(utf8('c'))?.then(() => (mayRead = true))
  await pass(0)
  expect(mayRead).toBe(false)
  taken.resolve()
  await pass(0)
  expect(mayRead).toBe(true)
})

test('that the client had left when the timer sent is learned at the next chunk', async () => {
  const left = new Error('the client has disconnected')
  let isGone = false
  const { sends } = opened(20, () => (isGone ? Promise.reject(left) : Promise.resolve()))
  await sends.send(utf8('a'))
  isGone = true
  await sends.send(utf8('b'))
  await pass(40)
  await expect(sends.send(utf8('c'))).rejects.toBe(left)
})

test('a stream that has left sends nothing by itself any more', async () => {
  const { sends, sent } = opened(20)
  await sends.send(utf8('a'))
  await sends.send(utf8('b'))
  sends.leave()
  await pass(1_000)
  expect(sent).toEqual(['a'])
  await sends.sendNow()
  expect(sent).toEqual(['a', 'b'])
})
