import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { compactVerify, createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { fetchEvidence } from '../../src/cli/verify/evidence-source.ts'
import { createRouterClient } from '../../src/cli/verify/router-client.ts'
import { envelopeSchema } from '../../src/protocol/envelope.ts'
import { es256JwkSchema } from '../../src/protocol/jwk.ts'
import { parseNano } from '../../src/protocol/money.ts'
import { verifyReceipt } from '../../src/verify/receipt.ts'
import { completionIn, completionOf, errorOf, usageOf } from '../support/answers.ts'
import { chatAs, newCustomer, routerOf, type TestCustomer } from '../support/customer.ts'
import {
  GATED,
  openedAfter,
  startGatedProvider,
  type GatedProvider,
} from '../support/gated-provider.ts'
import { startPostgres, type PostgresServer } from '../support/postgres.ts'
import { startStack, until, type Stack } from '../support/stack.ts'

let postgres: PostgresServer
let provider: GatedProvider
let left: Stack
let right: Stack

beforeAll(async () => {
  ;[postgres, provider] = await Promise.all([startPostgres(), startGatedProvider()])
  const { config } = provider
  const env = { STORAGE: 'postgres', DATABASE_URL: await postgres.createDatabase() }
  const started = await Promise.all([startStack({ config, env }), startStack({ config, env })])
  left = started[0]
  right = started[1]
})
afterAll(async () => {
  await Promise.all([left, right].map((stack) => stack.stop()))
  await provider.stop()
  await postgres.stop()
})

const CHAT = { model: 'glm-5', max_tokens: 1000 }

function get(stack: Stack, customer: TestCustomer, path: string): Promise<Response> {
  return fetch(stack.local.base_url + path, {
    headers: { authorization: `Bearer ${customer.key}` },
  })
}

/** The key that an instance signs with, as its own evidence names it. */
async function liveKidOf(stack: Stack): Promise<string | undefined> {
  const evidence = envelopeSchema.parse(await (await stack.fetch('/attestation')).json())
  return evidence.report_data_binding?.receipt_key_thumbprint
}

async function keySetOf(stack: Stack): Promise<JSONWebKeySet> {
  return (await stack.fetch('/.well-known/jwks.json')).json()
}

describe('two instances on one PostgreSQL', () => {
  test('publish the live key of each other before either has signed anything', async () => {
    const [ofLeft, ofRight] = await Promise.all([left, right].map(liveKidOf))
    expect(ofLeft).not.toBe(ofRight)
    for (const stack of [left, right]) {
      const kids = (await keySetOf(stack)).keys.map(({ kid }) => kid)
      expect(new Set(kids)).toEqual(new Set([ofLeft, ofRight]))
    }
  })

  test('share customers, keys, credit and the ledger', async () => {
    const customer = await newCustomer(routerOf(left), { balance_eur: '0.00' })
    const refused = await chatAs(routerOf(right), customer, CHAT)
    expect(refused.status).toBe(402)
    expect((await errorOf(refused)).code).toBe('insufficient_balance')

    const admin = new AdminApi(right.local.base_url, right.local.admin_token)
    const credit = { amount_eur: '5.00', reference: 'invoice 1' }
    await admin.call('POST', `/admin/customers/${customer.id}/credits`, credit)
    const served = [left, right, left, right].map((stack) =>
      chatAs(routerOf(stack), customer, CHAT).then(completionOf),
    )
    const receiptIds = (await Promise.all(served)).map(({ service }) => service.receipt_id)
    for (const stack of [left, right]) {
      const { data } = await usageOf(await get(stack, customer, '/v1/usage'))
      expect(new Set(data.map((row) => row.receipt_id))).toEqual(new Set(receiptIds))
      const cost = data.reduce((sum, row) => sum + Math.round(row.cost_eur * 1e9), 0)
      const { balance_eur, reserved_eur } = await customer.show()
      expect(parseNano('5.00') - parseNano(balance_eur)).toBe(BigInt(cost))
      expect(reserved_eur).toBe('0.00')
    }
  })

  test('do not serve a key that the other has deleted', async () => {
    const customer = await newCustomer(routerOf(left), { billing: 'postpaid' })
    expect((await chatAs(routerOf(right), customer, CHAT)).status).toBe(200)
    const admin = new AdminApi(left.local.base_url, left.local.admin_token)
    const prefix = customer.key.split('_').slice(0, 3).join('_')
    await admin.call('DELETE', `/admin/customers/${customer.id}/keys/${prefix}`)
    const wrong = async () => {
      const answer = await chatAs(routerOf(right), customer, { ...CHAT, max_tokens: 'many' })
      return answer.status
    }
    expect(await wrong()).toBeOneOf([400, 401])
    await expect.poll(wrong, { timeout: 30_000 }).toBe(401)
    expect((await chatAs(routerOf(right), customer, CHAT)).status).toBe(401)
  })

  test('admit exactly as many racing requests as the last cents cover', async () => {
    const held = { ...CHAT, model: GATED }
    const reservation = await reservationOf(held)
    const balance = reservation * 3n + reservation / 2n
    const customer = await newCustomer(routerOf(left), { balance_eur: eur(balance) })
    provider.close()
    const race = Array.from({ length: 12 }, (_, index) =>
      chatAs(routerOf(index % 2 ? left : right), customer, held),
    )
    const statuses = (await openedAfter(provider, 9, race)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(3)
    expect(statuses.filter((status) => status === 402)).toHaveLength(9)
    const { data } = await usageOf(await get(right, customer, '/v1/usage'))
    expect(data).toHaveLength(3)
  })

  test('publish the keys of both', async () => {
    const customer = await newCustomer(routerOf(left), { billing: 'postpaid' })
    const kids = await Promise.all([left, right].map((stack) => kidOf(stack, customer)))
    expect(new Set(kids).size).toBe(2)
    for (const stack of [left, right]) {
      const { keys } = await keySetOf(stack)
      expect(kids.every((kid) => keys.some((key) => key.kid === kid))).toBe(true)
    }
  })

  test('verify a receipt of the one through the other, once the first is gone', async () => {
    const customer = await newCustomer(routerOf(right), { billing: 'postpaid' })
    const rootKey: unknown = JSON.parse(readFileSync(left.local.root_key, 'utf8'))
    const answer = await chatAs(routerOf(left), customer, CHAT)
    const body = await answer.text()
    const { service } = completionIn(body)
    await left.stop('SIGKILL')

    const { receipt }: { receipt: string } = await (
      await get(right, customer, `/v1/receipts/${service.receipt_id}`)
    ).json()
    const jwks = await keySetOf(right)
    const { payload } = await compactVerify(receipt, createLocalJWKSet(jwks))
    expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({ jti: service.receipt_id })

    const client = createRouterClient(right.local.base_url, 'evidence')
    const result = await verifyReceipt(receipt, {
      now: Date.now(),
      jwks,
      evidence: await fetchEvidence(client, receipt, customer.key),
      expected: {
        id: service.receipt_id,
        clientResponseSha256: createHash('sha256').update(body).digest('hex'),
      },
      simulated: 'any',
      router: { rootJwk: es256JwkSchema.parse(rootKey), environments: ['local'] },
    })
    expect(result.checks.filter(({ ok }) => !ok)).toEqual([])
    expect(result.checks.map(({ name }) => name)).toContain('receipt_key')
    expect(result.ok).toBe(true)
    expect((await chatAs(routerOf(right), customer, CHAT)).status).toBe(200)
  })
})

/** What one request reserves, in nano-EUR: read from outside while it is in progress. */
async function reservationOf(body: object): Promise<bigint> {
  const customer = await newCustomer(routerOf(left), { balance_eur: '10.00' })
  provider.close()
  const answer = chatAs(routerOf(left), customer, body)
  await until(() => provider.asked() === 1)
  const { reserved_eur } = await customer.show()
  provider.open()
  expect((await answer).status).toBe(200)
  return parseNano(reserved_eur)
}

function eur(nano: bigint): string {
  const digits = nano.toString().padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

async function kidOf(stack: Stack, customer: TestCustomer): Promise<string | undefined> {
  const { service } = await completionOf(await chatAs(routerOf(stack), customer, CHAT))
  const answer = await get(stack, customer, `/v1/receipts/${service.receipt_id}`)
  const { receipt }: { receipt: string } = await answer.json()
  return decodeProtectedHeader(receipt).kid
}
