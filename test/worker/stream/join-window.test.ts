import { expect, test } from 'vitest'
import { JoinWindow } from '../../../src/worker/stream/join-window.ts'

/** A window for 1,000 chunks a second, and a clock for it. */
function opened() {
  const time = { now: 0 }
  return { time, window: new JoinWindow(() => time.now, 1_000) }
}

function enter(window: JoinWindow) {
  const stream = { arrivedAt: window.now() }
  window.enter(stream)
  return stream
}

test('the window is the time that all active streams take for one chunk each', () => {
  const { window } = opened()
  for (let i = 0; i < 40; i += 1) enter(window)
  expect(window.at(0)).toBe(40)
})

test('with few streams there is none', () => {
  const { window } = opened()
  for (let i = 0; i < 3; i += 1) enter(window)
  expect(window.at(0)).toBe(0)
})

test('however many streams there are, it is at most a quarter of a second', () => {
  const { window } = opened()
  for (let i = 0; i < 2_000; i += 1) enter(window)
  expect(window.at(0)).toBe(250)
})

test('streams that have been silent for a second, and those that have ended, do not count', () => {
  const { time, window } = opened()
  const streams = Array.from({ length: 40 }, () => enter(window))
  time.now = 900
  for (const stream of streams.slice(0, 20)) stream.arrivedAt = time.now
  expect(window.at(time.now)).toBe(40)
  time.now = 1_000
  expect(window.at(time.now)).toBe(20)
  for (const stream of streams.slice(0, 10)) window.leave(stream)
  time.now = 1_100
  expect(window.at(time.now)).toBe(10)
})

test('streams are counted again after a tenth of a second, and when the clock was set back', () => {
  const { time, window } = opened()
  for (let i = 0; i < 10; i += 1) enter(window)
  expect(window.at(0)).toBe(10)
  for (let i = 0; i < 10; i += 1) enter(window)
  time.now = 99
  expect(window.at(time.now)).toBe(10)
  time.now = -1
  for (let i = 0; i < 10; i += 1) enter(window)
  expect(window.at(time.now)).toBe(10)
})
