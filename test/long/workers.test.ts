import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readServingFile } from '../../src/host/serve/serving-file.ts'
import { completionOf, errorOf, usageOf } from '../support/answers.ts'
import { chatAs, newCustomer } from '../support/customer.ts'
import { startPacedProvider, type PacedProvider } from '../support/paced-provider.ts'
import { ADMIN_TOKEN, chatBody, runServe, startServe, type Serving } from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { startLoad } from '../support/steady-load.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

/** Several worker processes on the ledger process of their host. */

const LANES = 8
const PARTS = ['enclave', 'ledger', 'worker', 'worker-2']
const CHAT = { model: 'm', max_tokens: 1000 }

let provider: PacedProvider
let router: Serving

function config(service: object = {}): object {
  return {
    service: {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova'],
      ...service,
    },
    plans: { five: { requests_per_minute: 5 } },
    providers: { nova: { base_url: provider.baseUrl, attestation: { adapter: 'none' } } },
    routes: [
      {
        model_key: 'm',
        provider: 'nova',
        upstream_model: 'paced-20',
        type: 'chat',
        pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1_000 },
      },
    ],
  }
}

beforeAll(async () => {
  provider = await startPacedProvider()
  // Several workers without a named engine use the ledger process.
  router = await startServe({ config: config({ workers: 2 }) })
})
afterAll(async () => {
  await router?.remove()
  provider.close()
})

const address = () => ({ baseUrl: router.at.http_url, adminToken: ADMIN_TOKEN })

/** The processes as they are now. */
function pidOf(part: string): number {
  return readServingFile(router.stateDir).parts[part] ?? 0
}

/** A request on a connection of its own, so that the kernel chooses its worker. */
async function ask(): Promise<number> {
  const headers = { authorization: `Bearer ${router.apiKey}`, connection: 'close' }
  const url = `${router.at.http_url}/v1/chat/completions`
  const answer = await fetch(url, { ...chatBody('m'), headers }).catch(() => undefined)
  await answer?.text().catch(() => '')
  return answer?.status ?? 0
}

describe('two workers on one ledger process', () => {
  test('run beside it and the daemon', () => {
    expect(Object.keys(router.at.parts).toSorted()).toEqual(PARTS)
  })

  test('both serve one set of customers, rows and receipts', async () => {
    const before = (await usageOf(await router.fetch('/v1/usage'))).total_count
    const answers = await Promise.all(
      Array.from({ length: 16 }, async () =>
        completionOf(
          await router.fetch('/v1/chat/completions', {
            ...chatBody('m'),
            headers: { connection: 'close' },
          }),
        ),
      ),
    )
    const found = await Promise.all(
      answers.map(async ({ service }) => {
        const headers = { connection: 'close' }
        return (await router.fetch(`/v1/receipts/${service.receipt_id}`, { headers })).status
      }),
    )
    expect(new Set(found)).toEqual(new Set([200]))
    expect((await usageOf(await router.fetch('/v1/usage'))).total_count - before).toBe(16)
  })

  test('share the limits of a key: of racing requests exactly as many are admitted as it allows', async () => {
    const customer = await newCustomer(address(), { billing: 'postpaid', plan: 'five' })
    const headers = { connection: 'close' }
    const answers = await Promise.all(
      Array.from({ length: 24 }, () => chatAs(address(), customer, CHAT, { headers })),
    )
    const statuses = answers.map(({ status }) => status)
    await Promise.all(answers.map((answer) => answer.text()))
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    expect(statuses.filter((status) => status === 429)).toHaveLength(19)
  })

  test('share a balance: racing requests reserve no more than it covers', async () => {
    const customer = await newCustomer(address(), { balance_eur: '3.50' })
    const headers = { connection: 'close' }
    const answers = await Promise.all(
      Array.from({ length: 24 }, () => chatAs(address(), customer, CHAT, { headers })),
    )
    await Promise.all(answers.map((answer) => answer.text()))
    const { balance_eur, reserved_eur } = await customer.show()
    expect(reserved_eur).toBe('0.00')
    const admitted = answers.filter(({ status }) => status === 200).length
    expect(admitted).toBeGreaterThan(0)
    // Ten tokens of 0.001 EUR and five of input for each answer, and one answer at most 1.00 EUR and the input.
    expect(Number(balance_eur)).toBeCloseTo(3.5 - admitted * 0.010_005, 9)
    expect(answers.filter(({ status }) => status === 402).length).toBe(24 - admitted)
  })

  test('give the answer of a repeated Idempotency-Key once, whichever of them gets the repeats', async () => {
    const before = (await usageOf(await router.fetch('/v1/usage'))).total_count
    const headers = { 'idempotency-key': 'the-same', connection: 'close' }
    const repeat = async (): Promise<string> => {
      const answer = await router.fetch('/v1/chat/completions', { ...chatBody('m'), headers })
      const text = await answer.text()
      return answer.status === 409 ? repeat() : text
    }
    const texts = await Promise.all(Array.from({ length: 8 }, repeat))
    expect(new Set(texts).size).toBe(1)
    const after = (await usageOf(await router.fetch('/v1/usage'))).total_count
    expect(after).toBe(before + 1)
  })

  test.each(PARTS)(
    'survive the death of %s: nothing settled is lost, and all is served again',
    async (part) => {
      const rowsBefore = (await usageOf(await router.fetch('/v1/usage'))).total_count
      const load = startLoad(LANES, ask)
      await load.further(LANES)
      const pid = pidOf(part)
      process.kill(pid, 'SIGKILL')
      await until(async () => pidOf(part) !== pid)
      await load.further(LANES)
      const statuses = await load.stop()
      expect(pidOf(part)).not.toBe(pid)
      await until(async () => {
        const tried = await Promise.all(Array.from({ length: LANES }, ask))
        return tried.every((status) => status === 200)
      })
      const after = startLoad(LANES, ask)
      await after.further(2 * LANES)
      const later = await after.stop()
      expect(later.filter((status) => status !== 200)).toEqual([])
      const answered = [...statuses, ...later].filter((status) => status === 200).length
      const { total_count } = await usageOf(await router.fetch('/v1/usage'))
      expect(total_count - rowsBefore).toBeGreaterThanOrEqual(answered)
    },
  )

  test('answer 503 and bill nothing while the ledger process is frozen, and serve when it thaws', async () => {
    const pid = pidOf('ledger')
    const before = (await usageOf(await router.fetch('/v1/usage'))).total_count
    process.kill(pid, 'SIGSTOP')
    try {
      const answer = await router.fetch('/v1/chat/completions', chatBody('m'))
      expect(answer.status).toBe(503)
      expect((await errorOf(answer)).code).toBe('service_unavailable')
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await until(async () => (await ask()) === 200)
    const { total_count } = await usageOf(await router.fetch('/v1/usage'))
    expect(total_count - before).toBe(1)
  })
})

describe('a state directory', () => {
  test('with a router is refused to a second one, by name', async () => {
    const second = runServe({
      config: config(),
      env: { ADMIN_TOKEN, STORAGE: 'sqlite' },
      stateDir: router.stateDir,
    })
    expect(await second.ended).toBe(1)
    expect(second.output()).toContain(`${router.stateDir} is in use by another router`)
    await second.remove()
  })
})

test('a ledger of another embedded engine is refused by name, and moved by a command', async () => {
  const first = await startServe({ config: config(), env: { STORAGE: 'sqlite' } })
  await completionOf(await first.fetch('/v1/chat/completions', chatBody('m')))
  first.signal('SIGTERM')
  expect(await first.ended).toBe(0)
  const { stateDir } = first
  const other = runServe({ config: config(), env: { ADMIN_TOKEN }, stateDir })
  expect(await other.ended).toBe(1)
  expect(other.output()).toContain(
    'is the ledger of STORAGE=sqlite, and this start is for STORAGE=durable-object',
  )
  const move = runServe({
    config: config(),
    stateDir,
    args: ['move-ledger', '--to', 'durable-object'],
  })
  expect({ status: await move.ended, output: move.output() }).toMatchObject({ status: 0 })
  const moved = await startServe({ config: config(), stateDir })
  const headers = { authorization: `Bearer ${first.apiKey}` }
  expect((await usageOf(await moved.fetch('/v1/usage', { headers }))).total_count).toBe(1)
  for (const run of [moved, move, other, first]) await run.remove()
})
