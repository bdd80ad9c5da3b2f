import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wav } from '../support/audio-samples.ts'
import { errorOf, usageOf } from '../support/answers.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import {
  GATED,
  openedAfter,
  startGatedProvider,
  type GatedProvider,
} from '../support/gated-provider.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

/** `Idempotency-Key` on two instances that share a PostgreSQL, one of which is killed. */

let server: PostgresServer
let provider: GatedProvider
let sql: postgres.Sql
let left: Stack
let right: Stack

beforeAll(async () => {
  ;[server, provider] = await Promise.all([startPostgres(), startGatedProvider()])
  const url = await server.createDatabase()
  sql = postgres(url)
  const env = { STORAGE: 'postgres', DATABASE_URL: url }
  const { config } = provider
  const started = await Promise.all([startStack({ config, env }), startStack({ config, env })])
  left = started[0]
  right = started[1]
})
afterAll(async () => {
  await sql.end()
  await Promise.all([left, right].map((stack) => stack.stop()))
  await provider.stop()
  await server.stop()
})

const CHAT = { model: 'glm-5', max_tokens: 100 }

const customerOf = () => newCustomer(routerOf(left), { balance_eur: '10.00' })

const ask = (stack: Stack, customer: TestCustomer, key: string, more: object = {}) =>
  chatAs(routerOf(stack), customer, { ...CHAT, ...more }, { headers: { 'idempotency-key': key } })

async function billed(customer: TestCustomer): Promise<number> {
  const headers = { authorization: `Bearer ${customer.key}` }
  const answer = await fetch(`${right.local.base_url}/v1/usage`, { headers })
  return (await usageOf(answer)).total_count
}

describe('an Idempotency-Key on two instances', () => {
  test('is carried out once, whichever instance gets it first', async () => {
    const customer = await customerOf()
    provider.close()
    const askGated = (stack: Stack) => ask(stack, customer, 'race', { model: GATED })
    const asked = Array.from({ length: 12 }, (_, index) => askGated(index % 2 ? left : right))
    const race = await openedAfter(provider, 11, asked)
    const statuses = race.map(({ status }) => status).toSorted((one, two) => one - two)
    expect(statuses).toEqual([200, ...Array.from({ length: 11 }, () => 409)])
    expect(provider.asked()).toBe(1)
    const winner = await race.find(({ status }) => status === 200)?.text()
    for (const stack of [left, right]) {
      const repeat = await askGated(stack)
      expect(repeat.headers.get('idempotency-replayed')).toBe('true')
      expect(await repeat.text()).toBe(winner)
    }
    expect(await billed(customer)).toBe(1)
  })

  test('is known for a transcription, though clients repeat its form with another boundary', async () => {
    const customer = await customerOf()
    const post = (stack: Stack, language: string) => {
      const form = new FormData()
      form.set('model', 'whisper-large-v3')
      form.set('language', language)
      form.set(
        'file',
        new File([new Uint8Array(wav(0.1).bytes)], 'speech.wav', { type: 'audio/wav' }),
      )
      return fetch(`${stack.local.base_url}/v1/audio/transcriptions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${customer.key}`, 'idempotency-key': 'speech' },
        body: form,
      })
    }
    const first = await post(left, 'en')
    const body = await first.text()
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([200, null])
    const repeat = await post(right, 'en')
    expect(repeat.headers.get('idempotency-replayed')).toBe('true')
    expect(repeat.headers.get('x-receipt-id')).toBe(first.headers.get('x-receipt-id'))
    expect(await repeat.text()).toBe(body)
    expect((await post(right, 'de')).status).toBe(422)
    expect(await billed(customer)).toBe(1)
  })

  const TAMPERINGS = {
    'the answer': `answer = 'AAAA' || substr(answer, 5)`,
    'the answer, for that of another request': `answer = (SELECT answer
      FROM idempotent_requests AS other
      WHERE other.name <> idempotent_requests.name AND other.answer IS NOT NULL LIMIT 1)`,
    'the request it belongs to': `request_id = 'another'`,
  }
  test.each(Object.entries(TAMPERINGS))(
    'is neither answered nor billed again once somebody changed in the storage: %s',
    async (_what, change) => {
      const customer = await customerOf()
      for (const key of ['one', 'two']) expect((await ask(left, customer, key)).status).toBe(200)
      await sql.unsafe(`UPDATE idempotent_requests SET ${change}`)
      const repeat = await ask(right, customer, 'one')
      expect([repeat.status, (await errorOf(repeat)).code]).toEqual([410, 'answer_not_kept'])
      expect(await billed(customer)).toBe(2)
      const admin = { authorization: `Bearer ${right.local.admin_token}` }
      const metrics = await fetch(`${right.local.base_url}/admin/metrics`, { headers: admin })
      expect(await metrics.text()).toContain('{part="kept_answer",failure="unreadable"}')
    },
  )

  test('of an instance that is killed meanwhile is carried out by the other, and billed once', async () => {
    const customer = await customerOf()
    provider.close()
    const askGated = (stack: Stack) => ask(stack, customer, 'killed', { model: GATED })
    const lost = askGated(left).catch((error: unknown) => error)
    await until(async () => {
      const claims = await sql`SELECT 1 FROM idempotent_requests WHERE customer_id = ${customer.id}`
      return claims.length === 1
    })
    // The worker first: one that sees its client leave gives the claim back.
    process.kill(left.local.pids.worker, 'SIGKILL')
    await left.stop('SIGKILL')
    expect(await lost).toBeInstanceOf(Error)
    provider.open()
    const early = await askGated(right)
    expect([early.status, (await errorOf(early)).code]).toEqual([409, 'idempotency_in_progress'])
    // The claim of the dead lapses after a minute: that time passes here.
    await sql`UPDATE idempotent_requests SET held_until = held_until - 60000
      WHERE customer_id = ${customer.id}`
    const late = await askGated(right)
    expect([late.status, late.headers.get('idempotency-replayed')]).toEqual([200, null])
    expect(await billed(customer)).toBe(1)
    const { headers } = await askGated(right)
    expect(headers.get('idempotency-replayed')).toBe('true')
  })
})
