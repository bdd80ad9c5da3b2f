import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorOf, usageOf } from '../support/answers.ts'
import { answerSlowly } from '../support/crash/slow-answers.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** What the operator does to a customer with requests in progress, and what the customer sees of its account. */

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack()
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

const chat = (customer: TestCustomer, body: object = {}) =>
  chatAs(routerOf(stack), customer, { model: 'standin/glm-5', max_tokens: 100, ...body })

describe('a customer that is suspended', () => {
  const admin = (path: string, body: object) =>
    stack.fetch(path, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${stack.local.admin_token}` },
      body: JSON.stringify(body),
    })

  test('while a stream runs gets it to its end, billed and with its receipt, and nothing new', async () => {
    const customer = await newCustomer(routerOf(stack), { balance_eur: '5.00' })
    const headers = { authorization: `Bearer ${customer.key}` }
    await answerSlowly(standin, { frameDelayMs: 100, wholeDelayMs: 100 })
    const stream = await chat(customer, { stream: true })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('word-0')) text += (await reader?.read())?.value ?? ''
    expect(text).not.toContain('[DONE]')
    const path = `/admin/customers/${customer.id}`
    expect(await (await admin(path, { suspended: true })).json()).toMatchObject({
      suspended_at: expect.any(String),
    })
    const refused = await chat(customer)
    expect([refused.status, await errorOf(refused)]).toMatchObject([
      403,
      {
        code: 'customer_suspended',
        type: 'permission_error',
        message: 'The operator has suspended this account.',
      },
    ])
    for (let more = await reader?.read(); more?.done === false; more = await reader?.read()) {
      text += more.value
    }
    expect(text).toContain('word-11')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    const { data } = await usageOf(await stack.fetch('/v1/usage', { headers }))
    expect(data).toHaveLength(1)
    const receiptId = /"receipt_id":"([^"]+)"/.exec(text)?.[1]
    expect(data).toMatchObject([{ receipt_id: receiptId, completion_tokens: 12 }])
    expect((await stack.fetch(`/v1/receipts/${receiptId}`, { headers })).status).toBe(200)
    expect((await customer.show()).reserved_eur).toBe('0.00')
    await admin(path, { suspended: false })
    await standin.reset()
    expect((await chat(customer)).status).toBe(200)
  })
})

describe('what a customer used', () => {
  test('is added up, and comes as files for spreadsheets', async () => {
    const customer = await newCustomer(routerOf(stack), { balance_eur: '5.00' })
    for (const model of ['standin/glm-5', 'standin-two/glm-5', 'standin/glm-5']) {
      expect((await chat(customer, { model })).status).toBe(200)
    }
    const get = (path: string, accept = 'application/json') =>
      stack.fetch(path, { headers: { authorization: `Bearer ${customer.key}`, accept } })
    const { data } = await usageOf(await get('/v1/usage'))
    const summary = await (await get('/v1/usage/summary?group_by=day,provider')).json()
    expect(summary).toMatchObject({
      data: [
        { provider: 'standin', requests: 2 },
        { provider: 'standin-two', requests: 1 },
      ],
      total: { requests: 3 },
    })
    const spent = 5 - Number((await customer.show()).balance_eur)
    expect(summary.total.cost_eur).toBeCloseTo(spent, 9)
    const files = await Promise.all(
      ['/v1/usage', '/v1/usage/summary?group_by=model'].map((path) => get(path, 'text/csv')),
    )
    const [rows, sums] = await Promise.all(files.map((file) => file.text()))
    for (const { headers } of files) expect(headers.get('content-type')).toMatch(/^text\/csv/)
    expect(
      rows
        ?.split('\r\n')
        .slice(1, -1)
        .map((line) => line.split(',')[0]),
    ).toEqual(data.map((row) => row['id']))
    expect(sums?.split('\r\n').map((line) => line.split(',').slice(0, 2).join())).toEqual([
      'model,requests',
      'standin-two/glm-5,1',
      'standin/glm-5,2',
      '',
    ])
  })
})
