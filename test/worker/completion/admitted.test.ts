import { describe, expect, test } from 'vitest'
import { chatExchange } from '../../../src/worker/completion/admitted.ts'
import { chatRequest, chatRoute } from '../../support/chat-fixtures.ts'

/** The tokens that an exchange is billed for, and what was logged of them. */
function billed(produced: Parameters<typeof chatExchange>[2], members: object = {}) {
  const events: string[] = []
  const messages = [{ role: 'user', content: 'Hello' }]
  // Only what the record is made from; the rest of an admitted request has no part in it.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const admitted = {
    context: { requestId: 'r', log: (event: string) => events.push(event) },
    chat: chatRequest({ model: 'm', messages, ...members }),
    plan: { requestedRoute: 'glm-5' },
    admission: {},
    promptEstimate: 20,
  } as unknown as Parameters<typeof chatExchange>[0]
  const attempt = { route: chatRoute(), entry: 0, effort: undefined, failover: false }
  const { usage, usageCapped } = chatExchange(admitted, attempt, produced)
  return { ...usage, capped: usageCapped, events }
}

const COUNTED = { promptTokens: 7, completionTokens: 5, cachedTokens: 3, cacheWriteTokens: 1 }

test("the provider's counts are billed as they are, and nothing is logged as an estimate", () => {
  const usage = { ...COUNTED }
  expect(billed({ usage, uncountedTextBytes: 0 })).toEqual({
    ...COUNTED,
    capped: false,
    events: [],
  })
})

test('text that came after the last count is billed on top of it', () => {
  expect(billed({ usage: COUNTED, uncountedTextBytes: 7 })).toEqual({
    ...COUNTED,
    completionTokens: 5 + 3,
    capped: false,
    events: ['usage_estimated'],
  })
})

test("without counts the router's own are billed", () => {
  expect(billed({ usage: undefined, uncountedTextBytes: 300 })).toEqual({
    promptTokens: 20,
    completionTokens: 100,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    capped: false,
    events: ['usage_estimated'],
  })
})

test('a provider that counts the output alone has the input estimated', () => {
  const usage = { ...COUNTED, promptTokens: 0 }
  expect(billed({ usage, uncountedTextBytes: 0 })).toEqual({
    ...COUNTED,
    promptTokens: 20,
    capped: false,
    events: ['usage_estimated'],
  })
})

describe('a provider that gives a total alone', () => {
  const totalled = (totalTokens: number, usage?: typeof COUNTED) => {
    const { promptTokens, completionTokens, events } = billed({
      usage,
      uncountedTextBytes: 300,
      totalTokens,
    })
    expect(events).toEqual(['usage_estimated'])
    return [promptTokens, completionTokens]
  }

  test('is paid for no more tokens than that, and what is too much is taken from the answer first', () => {
    expect(totalled(90)).toEqual([20, 70])
    expect(totalled(20)).toEqual([20, 0])
    expect(totalled(5)).toEqual([5, 0])
  })

  test('is paid by the estimates where these are less: what else it counted may be of either price', () => {
    expect(totalled(120)).toEqual([20, 100])
    expect(totalled(9_000)).toEqual([20, 100])
  })

  test('and had given counts before keeps those', () => {
    expect(totalled(60, COUNTED)).toEqual([7, 53])
    expect(totalled(8, COUNTED)).toEqual([7, 5])
    expect(totalled(60, { ...COUNTED, promptTokens: 0 })).toEqual([20, 40])
  })
})

const CLAIMED = { ...COUNTED, completionTokens: 1e12 }

test('more output than was asked for is not billed, and flagged', () => {
  expect(billed({ usage: CLAIMED, uncountedTextBytes: 0 }, { max_tokens: 10, n: 3 })).toEqual({
    ...COUNTED,
    completionTokens: 30,
    capped: true,
    events: ['usage_capped'],
  })
})

test("without a cap of the caller's the route's own holds", () => {
  const { completionTokens } = billed({ usage: CLAIMED, uncountedTextBytes: 0 })
  expect(completionTokens).toBe(chatRoute().config.max_output_tokens)
})

test('more input than can be made of the bytes is not billed, and neither is more cached of it', () => {
  const usage = {
    promptTokens: 2 ** 53 - 1,
    completionTokens: 1,
    cachedTokens: 2 ** 53 - 1,
    cacheWriteTokens: 2 ** 53 - 1,
  }
  const most = 1024 + JSON.stringify([{ role: 'user', content: 'Hello' }]).length
  expect(billed({ usage, uncountedTextBytes: 0 })).toEqual({
    promptTokens: most,
    completionTokens: 1,
    cachedTokens: most,
    cacheWriteTokens: 0,
    capped: true,
    events: ['usage_capped'],
  })
})

test("the router's own estimate is held to the cap as well", () => {
  const { completionTokens, capped } = billed(
    { usage: undefined, uncountedTextBytes: 3000 },
    { max_tokens: 10 },
  )
  expect([completionTokens, capped]).toEqual([10, true])
})
