import { createParser } from 'eventsource-parser'
import { expect, test } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { KEEP_ALIVE, errorEvent } from '../../../src/worker/stream/error-event.ts'

test('an error is one data event, with nothing after it', () => {
  const body = {
    error: { message: 'a\nb', type: 'server_error', code: 'bad_gateway', param: null },
  }
  const text = fromUtf8(errorEvent(body))
  const events: string[] = []
  createParser({ onEvent: ({ data }) => void events.push(data) }).feed(text)
  expect(events.map((data): unknown => JSON.parse(data))).toEqual([body])
  expect(text).not.toContain('event:')
  expect(text).not.toContain('[DONE]')
})

test('a keep-alive is a comment that no parser dispatches', () => {
  const events: string[] = []
  createParser({ onEvent: ({ data }) => void events.push(data) }).feed(fromUtf8(KEEP_ALIVE))
  expect(fromUtf8(KEEP_ALIVE)).toBe(': keep-alive\n\n')
  expect(events).toEqual([])
})
