import { createParser } from 'eventsource-parser'
import { expect, test } from 'vitest'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { NOTHING_WRITTEN } from '../../../src/worker/stream/encoder.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

const LAST = chatFormat(true).lastEvents(OPTIONS)

test('an error is one data event, with nothing after it', () => {
  const text = LAST.fail(NOTHING_WRITTEN, new ApiError('bad_gateway', 'a\nb'))
  const events: string[] = []
  createParser({ onEvent: ({ data }) => void events.push(data) }).feed(text)
  expect(events.map((data): unknown => JSON.parse(data))).toEqual([
    { error: { message: 'a\nb', type: 'server_error', code: 'bad_gateway', param: null } },
  ])
  expect(text).not.toContain('event:')
  expect(text).not.toContain('[DONE]')
})

const THREE = { promptTokens: 2, completionTokens: 1 }
const NO_DETAILS = {
  cachedTokens: undefined,
  cacheWriteTokens: undefined,
  reasoningTokens: undefined,
}

test('the shown total is the sum of what is billed; details stand only where there are any', () => {
  const usageOf = (details: object) => {
    const usage = { ...THREE, ...NO_DETAILS, ...details }
    const end = { finishReason: 'stop', usage } as const
    const [event = ''] = LAST.close(NOTHING_WRITTEN, end, {}).split('\n\n')
    return JSON.parse(event.slice('data: '.length)).usage
  }
  const counts = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 }
  expect(usageOf({})).toEqual(counts)
  expect(usageOf({ cachedTokens: 0, reasoningTokens: 1 })).toEqual({
    ...counts,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 1 },
  })
})
