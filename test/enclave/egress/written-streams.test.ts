import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WrittenStreams } from '../../../src/enclave/egress/written-streams.ts'
import type { StreamRecord } from '../../../src/protocol/stream-record.ts'
import { RECORD } from './chunk-client.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Adds a stream that has ended, and whose record must be kept for so long; returns what says that the worker has left. */
function add(streams: WrittenStreams, name: string, keptMs: number, dropped = () => {}) {
  let end: (record: StreamRecord, ms: number, dropped: () => void) => void = () => {}
  let leave = () => {}
  streams.add(name, (onEnd, left) => {
    end = onEnd
    leave = left
    return {
      stop: () => {
        throw new Error('the stream was kept')
      },
    }
  })
  end(RECORD, keptMs, dropped)
  return leave
}

function ended(keptMs: number, dropped = () => {}): WrittenStreams {
  const streams = new WrittenStreams(1_000, () => {})
  add(streams, 'one', keptMs, dropped)
  return streams
}

test('the record of an ended stream waits for a worker whose client is slow', () => {
  const streams = ended(3_660_000)
  vi.advanceTimersByTime(3_659_999)
  expect(streams.end('one')).toEqual(RECORD)
})

test('is given again to a worker that did not get it, and then forgotten', () => {
  const streams = ended(3_660_000)
  expect(streams.end('one')).toEqual(RECORD)
  vi.advanceTimersByTime(14_999)
  expect(streams.end('one')).toEqual(RECORD)
  vi.advanceTimersByTime(15_000)
  expect(streams.end('one')).toBeUndefined()
})

test('of a stream that the worker ends is given again, too', () => {
  const streams = new WrittenStreams(1_000, () => {})
  const stopped = { ...RECORD, ending: { kind: 'stopped' as const } }
  streams.add('one', (onEnd) => ({
    stop: () => {
      onEnd(stopped, 60_000, () => {})
      return stopped
    },
  }))
  expect(streams.end('one')).toEqual(stopped)
  expect(streams.end('one')).toEqual(stopped)
})

test('and is forgotten when its time is over, which is said once', () => {
  const dropped = vi.fn<() => void>()
  const streams = ended(60_000, dropped)
  expect(streams.has('one')).toBe(true)
  vi.advanceTimersByTime(59_999)
  expect(dropped).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(streams.has('one')).toBe(false)
  expect(dropped).toHaveBeenCalledOnce()
  expect(streams.end('one')).toBeUndefined()
})

test('a worker that left before it had all of a stream has a minute to ask for its record', () => {
  const dropped = vi.fn<() => void>()
  const streams = new WrittenStreams(1_000, () => {})
  add(streams, 'one', 3_660_000, dropped)()
  vi.advanceTimersByTime(59_999)
  expect(dropped).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(dropped).toHaveBeenCalledOnce()
  expect(streams.has('one')).toBe(false)
})

test('one that asks before it leaves has as long as ever to ask again', () => {
  const streams = new WrittenStreams(1_000, () => {})
  const leave = add(streams, 'one', 3_660_000)
  expect(streams.end('one')).toEqual(RECORD)
  leave()
  vi.advanceTimersByTime(15_000)
  expect(streams.end('one')).toBeUndefined()
})

test('no record is dropped for want of room: no stream is taken until one was asked for', () => {
  const dropped: string[] = []
  const full = vi.fn<() => void>()
  const streams = new WrittenStreams(2, full)
  const end = (name: string) => add(streams, name, 3_660_000, () => void dropped.push(name))
  end('one')
  expect(streams.hasRoom()).toBe(true)
  end('two')
  expect(streams.hasRoom()).toBe(false)
  expect(full).toHaveBeenCalledOnce()
  expect(streams.end('one')).toEqual(RECORD)
  expect(streams.hasRoom()).toBe(true)
  end('three')
  for (const name of ['one', 'two', 'three']) expect(streams.end(name)).toEqual(RECORD)
  expect(dropped).toEqual([])
})

test('streams that are still open take room, too, and those that nobody asks for give it back in the end', () => {
  const streams = new WrittenStreams(2, () => {})
  streams.add('open', () => ({ stop: () => RECORD }))
  add(streams, 'left', 60_000)
  expect(streams.hasRoom()).toBe(false)
  vi.advanceTimersByTime(60_000)
  expect(streams.hasRoom()).toBe(true)
})

test('that there is no room is said once, and again when half of the streams have gone in between', () => {
  const full = vi.fn<() => void>()
  const streams = new WrittenStreams(4, full)
  for (const name of ['one', 'two', 'three', 'four']) add(streams, name, 60_000)
  expect([streams.hasRoom(), streams.hasRoom()]).toEqual([false, false])
  streams.end('one')
  add(streams, 'five', 60_000)
  expect(streams.hasRoom()).toBe(false)
  expect(full).toHaveBeenCalledOnce()
  for (const name of ['two', 'three']) streams.end(name)
  for (const name of ['six', 'seven']) add(streams, name, 60_000)
  expect(streams.hasRoom()).toBe(false)
  expect(full).toHaveBeenCalledTimes(2)
})
