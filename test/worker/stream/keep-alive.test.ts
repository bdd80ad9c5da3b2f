import { createParser } from 'eventsource-parser'
import { expect, test } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { KEEP_ALIVE } from '../../../src/worker/stream/keep-alive.ts'

test('a keep-alive is a comment that no parser dispatches', () => {
  const events: string[] = []
  createParser({ onEvent: ({ data }) => void events.push(data) }).feed(fromUtf8(KEEP_ALIVE))
  expect(fromUtf8(KEEP_ALIVE)).toBe(': keep-alive\n\n')
  expect(events).toEqual([])
})
