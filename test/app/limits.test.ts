import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { localConfig } from '../support/local-config.ts'
import { errorOf, usageOf } from '../support/answers.ts'
import { wav } from '../support/audio-samples.ts'
import { answerSlowly } from '../support/crash/slow-answers.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import { GATED, startGatedProvider, type GatedProvider } from '../support/gated-provider.ts'
import { startStack, until, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

let stack: Stack
let standin: Standin
let gated: GatedProvider

beforeAll(async () => {
  gated = await startGatedProvider(configured())
  stack = await startStack({ config: gated.config })
  standin = standinOf(stack)
})
afterAll(async () => {
  await stack.stop()
  await gated.stop()
})
beforeEach(() => standin.reset())

/** The local configuration with narrow plans, quick timers and a provider where nothing listens. */
function configured() {
  const local = localConfig()
  const timeouts = { stream_headers_after_ms: 200, keep_alive_ms: 200, idle_ms: 1_000 }
  const base_url = 'http://127.0.0.1:1/v1'
  return {
    ...local,
    service: { ...local.service, timeouts },
    providers: { ...local.providers, nowhere: { base_url, attestation: { adapter: 'none' } } },
    routes: [...local.routes, { ...local.routes[0], provider: 'nowhere' }],
    plans: {
      standard: {},
      single: { concurrent_requests: 1 },
      two: { requests_per_minute: 2 },
    },
  }
}

const chat = (customer: TestCustomer, body: object = {}, init = {}) =>
  chatAs(routerOf(stack), customer, { model: 'standin/glm-5', max_tokens: 100, ...body }, init)

const DELTA =
  'data: {"id":"x","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'

/** One request, and what must be seen of it. It resolves once the client has seen the end. */
type Ending = (customer: TestCustomer) => Promise<void>

const complete: Ending = async (customer) => {
  expect((await chat(customer)).status).toBe(200)
}

const completeStream: Ending = async (customer) => {
  expect(await (await chat(customer, { stream: true })).text()).toContain('[DONE]')
}

const refusedByProvider: Ending = async (customer) => {
  await standin.script({ status: 400, frames: ['{}'] })
  expect((await chat(customer)).status).toBe(400)
}

const failedProvider: Ending = async (customer) => {
  await standin.script({ status: 500, frames: ['{}'] })
  expect((await chat(customer, { stream: true })).status).toBe(502)
}

const noProvider: Ending = async (customer) => {
  expect((await chat(customer, { model: 'nowhere/glm-5' })).status).toBe(503)
}

const cutByProvider: Ending = async (customer) => {
  await standin.script({ frames: [DELTA], frame_delay_ms: 100, end: 'reset' })
  expect(await (await chat(customer, { stream: true })).text()).toContain('"error"')
}

const silentProvider: Ending = async (customer) => {
  await standin.script({ frames: [DELTA], end: 'hang' })
  expect(await (await chat(customer, { stream: true })).text()).toContain('"error"')
}

const outOfTime: Ending = async (customer) => {
  await standin.script({ end: 'hang' })
  const answer = await chat(customer, {}, { headers: { 'x-service-timeout-seconds': '1' } })
  expect(answer.status).toBe(504)
}

const leavesAfterOutput: Ending = async (customer) => {
  await standin.script({ frames: [DELTA], end: 'hang' })
  await leaveAfter(customer, 'Hi')
}

const leavesBeforeOutput: Ending = async (customer) => {
  await standin.script({ end: 'hang' })
  await leaveAfter(customer, ': keep-alive')
}

/** A client that goes away as soon as it has read some text. */
async function leaveAfter(customer: TestCustomer, wanted: string): Promise<void> {
  const leave = new AbortController()
  const { signal } = leave
  const answer = await chat(customer, { stream: true }, { signal })
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of answer.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (text.includes(wanted)) break
  }
  leave.abort()
  expect(text).toContain(wanted)
}

const failedTranscription: Ending = async (customer) => {
  await standin.script({ status: 500, frames: ['{}'] })
  const form = new FormData()
  form.set('model', 'standin/whisper-large-v3')
  const { bytes, name, type } = wav(1)
  form.set('file', new Blob([bytes], { type }), name)
  const answer = await fetch(`${stack.local.base_url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${customer.key}` },
    body: form,
  })
  expect(answer.status).toBe(502)
}

/** The provider's connection ends with it, or the daemon is gone when the complete answer must be signed. */
const dyingDaemon: Ending = async (customer) => {
  await answerSlowly(standin, { frameDelayMs: 60, wholeDelayMs: 500 })
  const { enclave } = stack.localNow().pids
  const answer = await chat(customer, { stream: true })
  process.kill(enclave, 'SIGKILL')
  expect(await answer.text()).toMatch(/"code":"(service_unavailable|bad_gateway)"/)
  await until(() => stack.localNow().pids.enclave !== enclave)
  await until(standinIsProven)
}

/** The new daemon has verified the provider's evidence. */
async function standinIsProven(): Promise<boolean> {
  const headers = { authorization: `Bearer ${stack.local.admin_token}` }
  const metrics = await (await stack.fetch('/admin/metrics', { headers })).text()
  return /^cmr_provider_proven\{provider="standin",[^}]*state="verified"\} 1$/m.test(metrics)
}

describe('a plan with one concurrent request', () => {
  test('refuses a second one and says when to come back', async () => {
    const customer = await newCustomer(routerOf(stack), { plan: 'single', billing: 'postpaid' })
    gated.close()
    const first = chat(customer, { model: GATED, stream: true })
    await until(() => gated.asked() === 1)
    const second = await chat(customer)
    gated.open()
    expect(second.status).toBe(429)
    expect(second.headers.get('retry-after')).toBe('1')
    const { code, message } = await errorOf(second)
    expect({ code, message }).toEqual({
      code: 'rate_limit_exceeded',
      message: 'This key may have 1 requests open at the same time.',
    })
    expect(await (await first).text()).toContain('[DONE]')
    await completeStream(customer)
  })

  test.each<[string, Ending]>([
    ['a whole answer', complete],
    ['a whole stream', completeStream],
    ['a refusal of the provider', refusedByProvider],
    ["the provider's failure before output", failedProvider],
    ['a provider that is not there', noProvider],
    ['a stream that the provider cut', cutByProvider],
    ['a stream in which the provider fell silent', silentProvider],
    ["the end of the request's time", outOfTime],
    ['a client that left in the middle of a stream', leavesAfterOutput],
    ['a client that left before any output', leavesBeforeOutput],
    ['a transcription that failed', failedTranscription],
    ['the death of the daemon', dyingDaemon],
  ])('takes the next one after %s', { timeout: 120_000 }, async (_, ending) => {
    const customer = await newCustomer(routerOf(stack), { plan: 'single', balance_eur: '5.00' })
    await ending(customer)
    const reserved = async () => (await customer.show()).reserved_eur
    await expect.poll(reserved, { timeout: 30_000 }).toBe('0.00')
    await standin.reset()
    await until(async () => (await stack.fetch('/healthz')).status === 200)
    // A route that failed may be resting; the other provider's is another one.
    expect((await chat(customer, { model: 'standin-two/glm-5' })).status).toBe(200)
  })
})

describe('a plan with two requests a minute', () => {
  test('counts them in headers and refuses the third', async () => {
    const customer = await newCustomer(routerOf(stack), { plan: 'two', billing: 'postpaid' })
    const answers = [await chat(customer), await chat(customer, { stream: true })]
    for (const [index, answer] of answers.entries()) {
      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('2')
      expect(answer.headers.get('x-ratelimit-remaining-requests')).toBe(String(1 - index))
      expect(answer.headers.get('x-ratelimit-reset-requests')).toMatch(/^(60|[1-5]?\d)s$/)
      await answer.text()
    }
    const third = await chat(customer)
    expect(third.status).toBe(429)
    expect(third.headers.get('x-ratelimit-remaining-requests')).toBe('0')
    expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(third.headers.get('retry-after'))).toBeLessThan(60)
    const { code, message } = await errorOf(third)
    expect({ code, message }).toEqual({
      code: 'rate_limit_exceeded',
      message: 'This key may send 2 requests per minute.',
    })
  })
})

describe('a prepaid balance', () => {
  test('is never overdrawn by bytes that are forwarded unread', async () => {
    const customer = await newCustomer(routerOf(stack), { balance_eur: '0.01' })
    const messages = [
      { role: 'user', content: 'Hello!' },
      { role: 'assistant', content: null, function_call: { arguments: 'x'.repeat(2_000_000) } },
      { role: 'user', content: 'Hello!' },
    ]
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => chat(customer, { messages, max_tokens: 1 })),
    )
    for (const answer of answers) {
      expect([answer.status, (await errorOf(answer)).code]).toEqual([402, 'insufficient_balance'])
    }
    expect(await customer.show()).toMatchObject({ balance_eur: '0.01', reserved_eur: '0.00' })
  })

  test.each([1e12, 2 ** 53 - 1])(
    'pays for no more than was asked for when the provider claims %i tokens',
    async (claimed) => {
      const customer = await newCustomer(routerOf(stack), { balance_eur: '5.00' })
      const usage = { prompt_tokens: claimed, completion_tokens: claimed }
      const finish = { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }
      const frames = [DELTA, `data: ${JSON.stringify(finish)}\n\n`, 'data: [DONE]\n\n']
      await standin.script({ frames })
      const answer = await chat(customer, { stream: true, max_tokens: 10 })
      expect(await answer.text()).toContain('[DONE]')
      const headers = { authorization: `Bearer ${customer.key}` }
      const { data } = await usageOf(await stack.fetch('/v1/usage', { headers }))
      expect(data).toMatchObject([{ completion_tokens: 10, usage_capped: true }])
      const { balance_eur: balance, reserved_eur: reserved } = await customer.show()
      expect(Number(balance)).toBeGreaterThan(4.9)
      expect(reserved).toBe('0.00')
      const admin = { headers: { authorization: `Bearer ${stack.local.admin_token}` } }
      const metrics = await (await stack.fetch('/admin/metrics', admin)).text()
      expect(metrics).toMatch(/^cmr_usage_capped_total\{route="standin\/glm-5"\} [1-9]/m)
    },
  )
})

describe('reads of a customer', () => {
  test('that come in a flood are limited, and take nothing from the requests of others', async () => {
    const greedy = await newCustomer(routerOf(stack), { billing: 'postpaid' })
    const modest = await newCustomer(routerOf(stack), { billing: 'postpaid' })
    const headers = { authorization: `Bearer ${greedy.key}` }
    const flood = Array.from({ length: 128 }, () =>
      stack.fetch('/v1/usage?limit=1000', { headers }),
    )
    const chats = await Promise.all([chat(modest), chat(modest), chat(modest)])
    expect(chats.map(({ status }) => status)).toEqual([200, 200, 200])
    const answers = await Promise.all(flood)
    const counts = Map.groupBy(answers, ({ status }) => status)
    expect(new Set(counts.keys())).toEqual(new Set([200, 429]))
    const [refused] = counts.get(429) ?? []
    if (refused === undefined) throw new Error('none was refused')
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await errorOf(refused)).toMatchObject({
      code: 'rate_limit_exceeded',
      message: 'Too many reads are in progress. Try again in a second, with fewer at a time.',
    })
    const others = { headers: { authorization: `Bearer ${modest.key}` } }
    expect((await stack.fetch('/v1/usage', others)).status).toBe(200)
    expect((await modest.show()).reserved_eur).toBe('0.00')
  })
})

describe('a key with limits of its own', () => {
  const adminCall = async (method: string, path: string, body: object) => {
    const authorization = `Bearer ${stack.local.admin_token}`
    const init = { method, headers: { authorization }, body: JSON.stringify(body) }
    return stack.fetch(path, init)
  }

  async function limited(limits: object): Promise<TestCustomer & { readonly path: string }> {
    const customer = await newCustomer(routerOf(stack), { balance_eur: '5.00' })
    const path = `/admin/customers/${customer.id}/keys/${customer.key.split('_').slice(0, 3).join('_')}`
    expect((await adminCall('PATCH', path, limits)).status).toBe(200)
    return { ...customer, path }
  }

  const own = async ({ key }: TestCustomer) =>
    (await stack.fetch('/v1/key', { headers: { authorization: `Bearer ${key}` } })).json()

  test('spends no more than they say, and its holder sees what is left', async () => {
    const customer = await limited({ limit_eur: '0.01', limit_reset: 'weekly' })
    expect((await chat(customer)).status).toBe(200)
    expect(await own(customer)).toMatchObject({
      limit_eur: '0.01',
      limit_reset: 'weekly',
      reserved_eur: '0.00',
      balance_eur: (await customer.show()).balance_eur,
      models: null,
    })
    const refused = await chat(customer, { max_tokens: 1_000_000 })
    expect(refused.status).toBe(402)
    expect(await errorOf(refused)).toMatchObject({
      code: 'insufficient_quota',
      type: 'insufficient_quota',
      message:
        "What is left of this key's limit does not cover the most that this request may cost.",
    })
    const { remaining_eur: left, spent_eur: spent } = await own(customer)
    expect(Number(left) + Number(spent)).toBeCloseTo(0.01, 9)
  })

  test('uses no models but its own, and a refusal costs nothing', async () => {
    const customer = await limited({ models: ['standin-two/glm-5'] })
    const refused = await chat(customer)
    expect(refused.status).toBe(403)
    expect(await errorOf(refused)).toMatchObject({ code: 'model_not_allowed', param: 'model' })
    expect((await customer.show()).reserved_eur).toBe('0.00')
    const answer = await chat(customer, { model: 'glm-5' })
    expect(answer.status).toBe(200)
    expect(JSON.stringify(await answer.json())).toContain('standin-two/glm-5')
  })

  test('is refused everywhere once it has expired', async () => {
    const customer = await limited({})
    const soon = { expires_at: new Date(Date.now() + 4_000).toISOString() }
    expect((await adminCall('PATCH', customer.path, soon)).status).toBe(200)
    const headers = { authorization: `Bearer ${customer.key}` }
    await until(async () => (await stack.fetch('/v1/key', { headers })).status === 401)
    for (const answer of [await chat(customer), await stack.fetch('/v1/key', { headers })]) {
      expect(answer.status).toBe(401)
      expect(await errorOf(answer)).toMatchObject({
        code: 'key_expired',
        message: 'The API key has expired.',
      })
    }
  })
})
