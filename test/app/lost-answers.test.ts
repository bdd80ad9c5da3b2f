import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { setTimeout as delay } from 'node:timers/promises'
import { completion, FIRST, JSON_TYPE, sound, status } from '../faults/answers.ts'
import { ask, PROMPT_ESTIMATE } from '../faults/ask.ts'
import { healthOf, ledgerTextOf } from '../faults/ledger.ts'
import { openWorld, type Customer, type StackWorld } from '../faults/world.ts'
import type { ProviderCall, Script } from '../support/fault-provider.ts'
import { openRequestsOf } from '../support/open-requests.ts'
import { RawClient } from '../support/raw-client.ts'
import { until } from '../support/stack.ts'

/** Answers that providers have made, or were making, and that their clients do not get. */

const MIB = 1024 * 1024

/** A whole answer in pieces that the network can take. */
async function sendWhole({ wire }: ProviderCall, text: string) {
  wire.head(200, JSON_TYPE)
  for (let at = 0; at < text.length && !wire.over; at += MIB) {
    await wire.sendSlowly(text.slice(at, at + MIB))
  }
  if (!wire.over) wire.end()
}

const entry = (token: string) => ({ token, logprob: -1.2345678, bytes: [120, 121] })

/** What the request asks for: so many choices, each of so many tokens with 20 alternatives. */
const withLogprobs: Script = (call) => {
  const { n, max_tokens: tokens } = JSON.parse(call.body)
  const top = Array.from({ length: 20 }, (_, index) => entry(`t${index}`))
  const content = Array.from({ length: tokens }, () => ({ ...entry('xy'), top_logprobs: top }))
  const choices = Array.from({ length: n }, (_, index) => ({
    index,
    message: { role: 'assistant', content: 'xy'.repeat(tokens) },
    logprobs: { content, refusal: null },
    finish_reason: 'length',
  }))
  return sendWhole(call, JSON.stringify({ ...completion(), choices }))
}

const SCRIPTS: Readonly<Record<string, Script>> = {
  sound,
  'too-large': withLogprobs,
  'too-many': (call) => sendWhole(call, `{"choices": [${'{},'.repeat(2 * MIB)}{}]}`),
  large: (call) => sendWhole(call, JSON.stringify(completion({ content: 'x'.repeat(MIB) }))),
  slow: async (call) => {
    await delay(4_000)
    return sound(call)
  },
  failing: status(500),
}

let world: StackWorld

beforeAll(async () => {
  const routes = Object.entries(SCRIPTS).flatMap(([model, script]) => [
    { model, at: 'alpha' as const, script },
    { model, at: 'beta' as const, script },
  ])
  world = await openWorld(routes, {
    timeouts: { sync_attempt_ms: 30_000, headers_ms: 30_000 },
  })
})
afterAll(() => world.close())

const callsOf = (model: string) => world.provider.calls(model).length

describe('an answer that is more than the router takes', () => {
  test.each([
    ['16 MiB', 'too-large', { n: 16, max_tokens: 1_000, logprobs: true, top_logprobs: 20 }, 16_000],
    ['the values of an answer', 'too-many', {}, 1_000],
  ])('(%s) is billed once, and made by no other provider', async (_, model, more, tokens) => {
    const customer = await world.newCustomer()
    const heard = await ask(world, customer, { model, stream: false, more })
    expect(heard.words).toBe('422 answer_too_long')
    const billed = `alpha ${PROMPT_ESTIMATE}+${tokens}, no receipt`
    expect(await ledgerTextOf(world, customer, heard)).toBe(billed)
    expect(callsOf(model)).toBe(1)
    expect(await healthOf(world, `alpha/${model}`)).toBe('closed')
  })
})

/** The share of memory of a customer that is alone. */
const SHARE = 128 * MIB

const openRequests = () => openRequestsOf(world.stack)

/** Takes the memory of a customer but for `left` bytes, for bodies that never arrive. */
async function holdMemory({ key }: Customer, left: number): Promise<readonly RawClient[]> {
  // What others held has been given back, so that the share is that of a customer that is alone.
  await until(async () => (await openRequests()) === 0)
  const sizes = [...Array.from({ length: 12 }, () => 10 * MIB), SHARE - 120 * MIB - left]
  const clients = await Promise.all(
    sizes.map(async (size) => {
      const client = await RawClient.connect(world.stack.local.base_url)
      onTestFinished(() => client.reset())
      const head = `authorization: Bearer ${key}\r\ncontent-length: ${size}`
      client.send(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n{`)
      return client
    }),
  )
  // A request takes its memory as soon as it is let in.
  await until(async () => (await openRequests()) === sizes.length)
  return clients
}

describe('a customer whose memory is used up', () => {
  test('is refused before a provider is asked', async () => {
    const customer = await world.newCustomer()
    const holders = await holdMemory(customer, 16 * 1024)
    const before = callsOf('sound')
    const heard = await ask(world, customer, { model: 'sound', stream: false })
    expect(heard.words).toBe('429 rate_limit_exceeded, retry after 5')
    expect(callsOf('sound')).toBe(before)
    for (const holder of holders) holder.reset()
    expect(await ledgerTextOf(world, customer)).toBe('no row')
  })

  test('gets ordinary answers, and pays for a large one that there is no room for', async () => {
    const customer = await world.newCustomer()
    const holders = await holdMemory(customer, 256 * 1024)
    expect((await ask(world, customer, { model: 'sound', stream: false })).text).toBe(FIRST)
    const heard = await ask(world, customer, { model: 'large', stream: false })
    expect(heard.words).toBe('429 rate_limit_exceeded, retry after 5')
    expect(callsOf('large')).toBe(1)
    for (const holder of holders) holder.reset()
    const billed = `alpha ${PROMPT_ESTIMATE}+1000, no receipt and alpha 7+5, receipt`
    expect(await ledgerTextOf(world, customer)).toBe(billed)
  })
})

describe('a time limit that the caller sets', () => {
  const headers = { 'x-service-timeout-seconds': '2' }

  test('ends an answer whose prompt is billed', async () => {
    const customer = await world.newCustomer()
    const heard = await ask(world, customer, { model: 'alpha/slow', stream: false, headers })
    expect(heard.words).toBe('504 upstream_timeout')
    const billed = `alpha ${PROMPT_ESTIMATE}+0, no receipt`
    expect(await ledgerTextOf(world, customer, heard)).toBe(billed)
  })

  test('ends one that is repeated under its key no second time', async () => {
    const customer = await world.newCustomer()
    const request = {
      model: 'alpha/slow',
      stream: false,
      headers: { ...headers, 'idempotency-key': 'once' },
    }
    expect((await ask(world, customer, request)).words).toBe('504 upstream_timeout')
    expect((await ask(world, customer, request)).words).toBe('410 answer_not_kept')
    const billed = `alpha ${PROMPT_ESTIMATE}+0, no receipt`
    expect(await ledgerTextOf(world, customer)).toBe(billed)
  })

  test('costs nothing where all providers have failed within it', async () => {
    const customer = await world.newCustomer()
    const enough = { 'x-service-timeout-seconds': '30' }
    const request = { model: 'failing', stream: false, headers: enough }
    const heard = await ask(world, customer, request)
    expect(heard.words).toBe('503 routes_unavailable')
    expect(await ledgerTextOf(world, customer)).toBe('no row')
  })
})
