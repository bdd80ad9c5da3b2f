import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { errorOf, errorSchema } from '../support/answers.ts'
import { startPacedProvider, type PacedProvider } from '../support/paced-provider.ts'
import { ADMIN_TOKEN, chatBody, startServe, type Serving } from '../support/serve.ts'
import { until } from '../support/stack.ts'
import { content, EVENT_STREAM } from '../faults/answers.ts'
import { startFaultProvider, type FaultProvider, type Script } from '../support/fault-provider.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import { TRUST_BUNDLE_URL } from '../support/trust-bundle-url.ts'

/** What becomes of requests that a drain does not wait for. */

let provider: PacedProvider
let flooding: FaultProvider

beforeAll(async () => {
  provider = await startPacedProvider()
  flooding = await startFaultProvider(() => flood)
})
afterAll(async () => {
  provider.close()
  await flooding.close()
})

/** Deltas without end, as fast as they are taken. */
const flood: Script = async ({ wire }) => {
  wire.head(200, EVENT_STREAM)
  while (!wire.over) await wire.sendSlowly(content('y'.repeat(64 * 1024)))
}

/** The models of one provider answer when they are let go, and within a time; the other's answer has no end. */
function config(): object {
  return {
    service: {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova', 'flooding'],
    },
    providers: {
      nova: unattestedAt(provider.baseUrl),
      flooding: unattestedAt(`http://127.0.0.1:${flooding.port}/flooding`),
    },
    routes: [
      ...['held', 2_000, 60_000].map((pace) => route('nova', `paced-${pace}`)),
      { ...route('flooding', 'flood'), max_output_tokens: 1_000 },
    ],
  }
}

function unattestedAt(baseUrl: string): object {
  return { base_url: baseUrl, api_key_env: 'NOVA_API_KEY', attestation: { adapter: 'none' } }
}

function route(by: string, model: string): object {
  return {
    model_key: model,
    provider: by,
    upstream_model: model,
    type: 'chat',
    pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
  }
}

async function serve(args: readonly string[], stateDir?: string): Promise<Serving> {
  const router = await startServe({
    config: config(),
    env: { NOVA_API_KEY: 'key' },
    args,
    ...(stateDir === undefined ? {} : { stateDir }),
  })
  onTestFinished(() => router.remove())
  return router
}

/** ceil(6 bytes / 3) + 16: of a stream that is cut, the router's own count of the prompt. */
const PROMPT = 18

const rowsSchema = z.object({
  data: z.array(
    z.object({
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      receipt_id: z.string().nullable(),
    }),
  ),
})
const customersSchema = z.object({ data: z.array(z.object({ reserved_eur: z.string() })) })

/** The rows of a customer as `18+9, no receipt`, and what of all customers' money is held. */
async function ledgerOf({ at }: Serving, key: string): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${key}` }
  const usage = await fetch(`${at.http_url}/v1/usage?limit=100`, { headers })
  const { data: rows } = rowsSchema.parse(await usage.json())
  const admin = new AdminApi(at.http_url, ADMIN_TOKEN)
  const { data } = customersSchema.parse(await admin.call('GET', '/admin/customers'))
  const held = data.filter(({ reserved_eur: reserved }) => Number(reserved) !== 0)
  return [
    ...rows.map(
      (row) =>
        `${row.prompt_tokens}+${row.completion_tokens}, ${row.receipt_id === null ? 'no receipt' : 'receipt'}`,
    ),
    ...held.map(({ reserved_eur: reserved }) => `${reserved} EUR stay reserved`),
  ]
}

/** The code of the error that is a stream's last event. */
function lastError(text: string): string {
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  return errorSchema.parse(JSON.parse(last.replace(/^data: /, ''))).error.code
}

describe('a stop', () => {
  let stateDir: string
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), 'cmr-drain-'))
  })

  test('tells the client of a stream that outlasts it, and bills what was delivered', async () => {
    onTestFinished(() => rmSync(stateDir, { recursive: true }))
    const router = await serve(['--drain-seconds', '9'], stateDir)
    const stream = await router.fetch('/v1/chat/completions', chatBody('paced-held', true))
    const whole = router.fetch('/v1/chat/completions', chatBody('paced-60000'))
    await until(() => provider.keys.length === 2)
    router.signal('SIGTERM')
    const text = await stream.text()
    expect(text).toContain('"8 "')
    expect(text).not.toContain('[DONE]')
    expect(lastError(text)).toBe('service_unavailable')
    const refused = await whole
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    expect((await errorOf(refused)).code).toBe('service_unavailable')
    expect(await router.ended).toBe(0)
    expect(router.output()).toContain('draining, at most 9 s')
    const again = await serve([], stateDir)
    expect(await ledgerOf(again, router.apiKey)).toEqual([`${PROMPT}+10, no receipt`])
  })
})

describe('a worker that is replaced', () => {
  test('ends all streams that outlast it, each told and billed once, and waits for those that do not', async () => {
    const router = await serve(['--drain-seconds', '9'])
    const many = Array.from({ length: 40 }, () => chatBody('paced-held', true))
    const outlasting = await Promise.all(
      many.map((body) => router.fetch('/v1/chat/completions', body)),
    )
    const ending = await router.fetch('/v1/chat/completions', chatBody('paced-2000', true))
    router.signal('SIGUSR2')
    expect(await ending.text()).toContain('[DONE]')
    const texts = await Promise.all(outlasting.map((stream) => stream.text()))
    expect(texts.map(lastError)).toEqual(texts.map(() => 'service_unavailable'))
    await until(() => router.output().split('worker   up').length === 3)
    const expected = [...texts.map(() => `${PROMPT}+10, no receipt`), '5+10, receipt']
    expect((await ledgerOf(router, router.apiKey)).toSorted()).toEqual(expected)
    const log = readFileSync(join(router.stateDir, 'log/worker.log'), 'utf8')
    expect(log).not.toContain('different request')
  })

  test('bills a client that does not read what came for it, too', async () => {
    const router = await serve(['--drain-seconds', '9'])
    const client = await RawClient.connect(router.at.http_url)
    onTestFinished(() => client.reset())
    client.pause()
    const messages = [{ role: 'user', content: 'Hello!' }]
    const text = JSON.stringify({ model: 'flood', stream: true, messages })
    const head = { authorization: `Bearer ${router.apiKey}`, 'content-length': text.length }
    client.send(rawRequest('POST', '/v1/chat/completions', head, text))
    const taken = () => flooding.calls('flood').at(-1)?.wire.bytesTaken ?? 0
    await until(async () => {
      const before = taken()
      await delay(500)
      return before > 0 && taken() === before
    })
    router.signal('SIGUSR2')
    await until(() => router.output().split('worker   up').length === 3)
    expect(await ledgerOf(router, router.apiKey)).toEqual([`${PROMPT}+1000, no receipt`])
  })
})
