import { expect, test } from 'vitest'
import { openDirectWindow } from '../../../src/worker/stream/direct-window.ts'

function windowOf(streams: number): number {
  const window = openDirectWindow(() => 0)
  for (let i = 0; i < streams; i += 1) window.enter({ arrivedAt: 0 })
  return window.at(0)
}

test('with sixteen streams nothing waits', () => {
  expect(windowOf(16)).toBe(0)
})

test('with a few more the window is 2.4 times what their chunks take, 3,000 a second', () => {
  expect(windowOf(20)).toBeCloseTo(16)
})

test('it is lengthened to at most 50 ms, with which of frames every 20 ms three leave together', () => {
  expect(windowOf(64)).toBe(50)
  expect(windowOf(150)).toBe(50)
})

test('with many streams it is as long as their chunks take', () => {
  expect(windowOf(300)).toBe(100)
  expect(windowOf(1_000)).toBe(250)
})
