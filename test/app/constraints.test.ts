import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { completionOf } from '../support/answers.ts'
import { wav } from '../support/audio-samples.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

/** What callers require of the provider, at every endpoint of a running stack with attested and unattested providers. */

const PRICES = { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 }
const ENVELOPE = { adapter: 'envelope', root_key: { standin: 'release root' } }

const route = (model_key: string, provider: string, type = 'chat') => ({
  model_key,
  provider,
  upstream_model: 'zai-org/GLM-5',
  type,
  pricing: PRICES,
})

const CONFIG = {
  service: { name: 'attested-router', mode: 'local' },
  providers: {
    plain: {
      base_url: 'http://standin.localhost/plain/v1',
      attestation: { adapter: 'none' },
    },
    nova: { base_url: 'https://standin.localhost/nova/v1', attestation: ENVELOPE },
  },
  routes: [
    route('open', 'plain'),
    route('proven', 'nova'),
    ...['plain', 'nova'].flatMap((provider) => [
      route('both', provider),
      route('vectors', provider, 'embedding'),
      route('speech', provider, 'transcription'),
    ]),
  ],
}

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack({ config: CONFIG })
  standin = standinOf(stack)
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

const claimsSchema = z.object({
  constraints: z.unknown().optional(),
  routed_model: z.string(),
  inference_attestation: z.object({
    evidence_summary: z.object({ evidence_sha256: z.string() }),
  }),
})

const receiptFile = () => join(stack.stateDir, 'receipt.json')

/** Also keeps the receipt for `verify`. */
async function receiptClaims(receiptId: string | null | undefined) {
  const answer = await stack.fetch(`/v1/receipts/${receiptId}`)
  const { receipt } = z.object({ receipt: z.string() }).parse(await answer.json())
  writeFileSync(receiptFile(), JSON.stringify({ id: receiptId, receipt }))
  const payload = Buffer.from(receipt.split('.')[1] ?? '', 'base64url').toString()
  return claimsSchema.parse(JSON.parse(payload))
}

const verdictSchema = z.object({
  checks: z.array(z.looseObject({ name: z.string(), ok: z.boolean() })),
})

/** The checks of constraints, and those that failed, of `verify receipt` on the receipt read last. */
async function verdictWith(required: string) {
  const { base_url, root_key } = stack.local
  const args = ['--base-url', base_url, '--root-key', root_key, '--require', required]
  const command = promisify(execFile)(
    process.execPath,
    ['src/cli/main.ts', 'verify', 'receipt', receiptFile(), ...args, ...VERIFY],
    { cwd: PROJECT_DIR, env: { ...process.env, CMR_API_KEY: stack.local.api_key } },
  )
  const { stdout } = await command.catch((failed: { stdout: string }) => failed)
  const { checks } = verdictSchema.parse(JSON.parse(stdout))
  return checks.filter(({ name, ok }) => name === 'constraints' || !ok)
}

const VERIFY = ['--allow-simulated', '--state', 'none', '--json']

function chat(model: string, more: object): Promise<Response> {
  return post('/v1/chat/completions', { ...CHAT, model, ...more })
}

/** One request at each endpoint that calls a provider, for a model of an unattested provider and, second, of an attested one. */
const ENDPOINTS: Readonly<
  Record<string, (member: object, headers: Record<string, string>) => Promise<Response>>
> = {
  chat: (member, headers) => post('/v1/chat/completions', { ...CHAT, ...member }, headers),
  'a chat stream': (member, headers) =>
    post('/v1/chat/completions', { ...CHAT, stream: true, ...member }, headers),
  responses: (member, headers) =>
    post('/v1/responses', { model: 'both', input: 'Hello!', ...member }, headers),
  messages: (member, headers) =>
    post('/v1/messages', { ...CHAT, max_tokens: 50, ...member }, headers),
  embeddings: (member, headers) =>
    post('/v1/embeddings', { model: 'vectors', input: 'Hello!', ...member }, headers),
  transcription: (member, headers) => {
    const body = new FormData()
    body.set('model', 'speech')
    body.set('file', new Blob([wav(1).bytes], { type: 'audio/wav' }), 'a.wav')
    for (const [name, value] of Object.entries(member)) body.set(name, JSON.stringify(value))
    return stack.fetch('/v1/audio/transcriptions', { method: 'POST', body, headers })
  },
}

const CHAT = { model: 'both', messages: [{ role: 'user', content: 'Hello!' }] }

function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return stack.fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

describe.each(Object.entries(ENDPOINTS))(
  'what a caller requires of the provider, by %s',
  (name, ask) => {
    test('is met by the attested provider alone, and is in a receipt that verifies', async () => {
      await standin.reset()
      if (name === 'embeddings') await standin.script(VECTORS)
      const attestation = { min: 'simulated', providers: ['plain', 'nova'] }
      const answer = await ask({ attestation }, { 'X-Service-Require': HEADER })
      expect(answer.status).toBe(200)
      await answer.text()
      const claims = await receiptClaims(answer.headers.get('x-receipt-id'))
      expect(claims.constraints).toEqual({ min: 'simulated', providers: ['nova', 'plain'] })
      expect(claims.routed_model).toMatch(/^nova\//)
      const sent = (await standin.exchanges()).map(({ request }) => JSON.stringify(request))
      expect(sent).toHaveLength(1)
      expect(sent[0]?.toLowerCase()).not.toMatch(/require|attestation|simulated/)
    })

    test('and that nothing meets is 412 before a byte leaves, whichever way it is said', async () => {
      const hardware = { attestation: { min: 'hardware' } }
      const pinned = { attestation: { evidence_sha256: ['ab'.repeat(32)] } }
      const answers = [
        await ask(hardware, {}),
        await ask(pinned, {}),
        await ask({}, { 'x-service-REQUIRE': 'min=hardware' }),
        await ask({}, { 'X-Service-Require': 'min=simulated; providers=plain' }),
      ]
      for (const answer of answers) {
        expect(answer.status).toBe(412)
        expect(await answer.json()).toMatchObject({
          error:
            name === 'messages'
              ? { type: 'invalid_request_error' }
              : { code: 'attestation_not_accepted', param: 'attestation' },
        })
      }
      expect(await standin.exchanges()).toEqual([])
    })

    test('is refused where it cannot be read, or said in two ways', async () => {
      const refused = async (...of: Parameters<typeof ask>) => {
        const answer = await ask(...of)
        const { error }: { error: { code?: string; message: string } } = await answer.json()
        return [answer.status, name === 'messages' ? error.message.slice(0, 25) : error.code]
      }
      const malformed = (message: string) =>
        name === 'messages' ? message : 'invalid_attestation_constraint'
      const header = { 'X-Service-Require': 'min=hardware, min=none' }
      expect(await refused({ attestation: { min: 'weak' } }, {})).toEqual([
        400,
        malformed('"attestation" must be an o'.slice(0, 25)),
      ])
      expect(await refused({}, header)).toEqual([
        400,
        malformed('The header X-Service-Require'.slice(0, 25)),
      ])
      const none = { 'X-Service-Require': 'min=none' }
      expect(await refused({ attestation: { min: 'hardware' } }, none)).toEqual([
        400,
        name === 'messages' ? 'The header X-Service-Requ' : 'invalid_request_error',
      ])
      expect(await standin.exchanges()).toEqual([])
    })
  },
)

const HEADER = 'providers=nova,plain; min=simulated'

const VECTORS = {
  headers: { 'content-type': 'application/json' },
  frames: [JSON.stringify({ object: 'list', data: [{ index: 0, embedding: [1] }], usage: {} })],
}

describe('what is required of the provider', () => {
  test('is checked by the verifier of the receipt, against what the request required', async () => {
    const answer = await chat('both', { attestation: { min: 'simulated' } })
    const claims = await receiptClaims((await completionOf(answer)).service.receipt_id)
    const digest = claims.inference_attestation.evidence_summary.evidence_sha256
    expect(await verdictWith('min=none')).toMatchObject([{ name: 'constraints', ok: true }])
    expect(await verdictWith('min=hardware')).toMatchObject([{ name: 'constraints', ok: false }])
    // The evidence that a receipt names can be required of the next request.
    const again = await chat('both', { attestation: { evidence_sha256: [digest] } })
    expect((await completionOf(again)).service).toMatchObject({ routed_model: 'nova/both' })
    await receiptClaims(again.headers.get('x-receipt-id'))
    expect(await verdictWith(`evidence_sha256=${digest}`)).toMatchObject([{ ok: true }])
  })

  test('leaves out what fails it among the models to fail over to', async () => {
    const attestation = { min: 'simulated' }
    const answer = await chat('open', { failover: ['proven'], attestation })
    expect((await completionOf(answer)).service).toMatchObject({
      routed_model: 'nova/proven',
      failover: true,
    })
    expect((await chat('open', { attestation })).status).toBe(412)
  })

  test('by a key holds for all of its requests, and gives the reservation back', async () => {
    const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
    const customers = z
      .object({ data: z.array(z.object({ id: z.string() })) })
      .parse(await admin.call('GET', '/admin/customers'))
    const path = `/admin/customers/${customers.data[0]?.id}/keys`
    const body = { name: 'strict', min_attestation: 'hardware' }
    const made = z
      .object({ key: z.string(), key_prefix: z.string() })
      .parse(await admin.call('POST', path, body))
    const headers = { authorization: `Bearer ${made.key}` }
    await standin.reset()
    const refused = await post('/v1/chat/completions', CHAT, headers)
    expect(refused.status).toBe(412)
    expect(await standin.exchanges()).toEqual([])
    const shown = await (await stack.fetch('/v1/key', { headers })).json()
    expect(shown).toMatchObject({ min_attestation: 'hardware', reserved_eur: '0.00' })
    await admin.call('PATCH', `${path}/${made.key_prefix}`, { min_attestation: 'simulated' })
    const answer = await post('/v1/chat/completions', CHAT, headers)
    const claims = await receiptClaims((await completionOf(answer)).service.receipt_id)
    expect(claims).toMatchObject({
      constraints: { min: 'simulated' },
      routed_model: 'nova/both',
    })
  })
})
