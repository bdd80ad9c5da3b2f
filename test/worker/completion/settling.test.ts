import { expect, test } from 'vitest'
import { chatExchange } from '../../../src/worker/completion/settling.ts'
import { chatRoute } from '../../support/chat-fixtures.ts'

/** The tokens that an exchange is billed for, and whether an estimate was logged. */
function billed(produced: Parameters<typeof chatExchange>[2]) {
  const events: string[] = []
  // Only what the record is made from; the rest of an admitted request has no part in it.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const admitted = {
    context: { requestId: 'r', log: (event: string) => events.push(event) },
    plan: { requestedRoute: 'glm-5' },
    admission: {},
    promptEstimate: 20,
  } as unknown as Parameters<typeof chatExchange>[0]
  const attempt = { route: chatRoute(), effort: undefined, failover: false, entry: 0 }
  const { usage } = chatExchange(admitted, attempt, produced)
  return { ...usage, estimated: events.includes('usage_estimated') }
}

const COUNTED = { promptTokens: 7, completionTokens: 5, cachedTokens: 3, cacheWriteTokens: 1 }

test("the provider's counts are billed as they are, and nothing is logged as an estimate", () => {
  const usage = { ...COUNTED }
  expect(billed({ usage, uncountedTextBytes: 0 })).toEqual({ ...COUNTED, estimated: false })
})

test('text that came after the last count is billed on top of it', () => {
  expect(billed({ usage: COUNTED, uncountedTextBytes: 7 })).toEqual({
    ...COUNTED,
    completionTokens: 5 + 3,
    estimated: true,
  })
})

test("without counts the router's own are billed", () => {
  expect(billed({ usage: undefined, uncountedTextBytes: 300 })).toEqual({
    promptTokens: 20,
    completionTokens: 100,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    estimated: true,
  })
})
