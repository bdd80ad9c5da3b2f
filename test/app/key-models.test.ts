import { afterAll, beforeAll, expect, test } from 'vitest'
import { wav } from '../support/audio-samples.ts'
import { newCustomer, routerOf } from '../support/customer.ts'
import { localConfig } from '../support/local-config.ts'
import { startStack, type Stack } from '../support/stack.ts'

let stack: Stack

beforeAll(async () => {
  stack = await startStack({ config: configured() })
})
afterAll(() => stack.stop())

/** What every model costs at the provider `dear`, where nothing listens. */
const DEAR: Readonly<Record<string, object>> = {
  chat: { currency: 'eur', input_per_mtok: 1_000_000, output_per_mtok: 1_000_000 },
  embedding: { currency: 'eur', input_per_mtok: 1_000_000 },
  transcription: { currency: 'eur', billing_unit: 'audio_second', unit_amount: 1_000 },
}

const MODELS = ['glm-5', 'bge-m3', 'whisper-large-v3']

/** The local configuration, in which a provider that comes last offers the models at prices that nobody can pay. */
function configured() {
  const local = localConfig()
  const ofStandin = local.routes.filter(
    (route: { provider: string; model_key: string }) =>
      route.provider === 'standin' && MODELS.includes(route.model_key),
  )
  const dear = ofStandin.map((route: { type: string }) => ({
    ...route,
    provider: 'dear',
    pricing: DEAR[route.type],
  }))
  const provider = { base_url: 'http://127.0.0.1:1/v1', attestation: { adapter: 'none' } }
  return {
    ...local,
    providers: { ...local.providers, dear: provider },
    routes: [...local.routes, ...dear],
  }
}

/** A customer with 5 EUR. */
async function customer(limits: object = {}): Promise<{ readonly key: string }> {
  const { id, key } = await newCustomer(routerOf(stack), { balance_eur: '5.00' })
  const path = `/admin/customers/${id}/keys/${key.split('_').slice(0, 3).join('_')}`
  const headers = { authorization: `Bearer ${stack.local.admin_token}` }
  const init = { method: 'PATCH', headers, body: JSON.stringify(limits) }
  expect((await stack.fetch(path, init)).status).toBe(200)
  return { key }
}

function form(): FormData {
  const upload = new FormData()
  const { bytes, name, type } = wav(1)
  upload.set('model', 'whisper-large-v3')
  upload.set('file', new Blob([bytes], { type }), name)
  return upload
}

const messages = [{ role: 'user', content: 'Hello!' }]

const ENDPOINTS: readonly (readonly [string, string, object | (() => FormData)])[] = [
  ['a chat', '/v1/chat/completions', { model: 'glm-5', messages, max_tokens: 9 }],
  [
    'a streamed chat',
    '/v1/chat/completions',
    { model: 'glm-5', messages, max_tokens: 9, stream: true },
  ],
  ['a chat with auto', '/v1/chat/completions', { model: 'auto', messages, max_tokens: 9 }],
  ['a response', '/v1/responses', { model: 'glm-5', input: 'Hello!', max_output_tokens: 9 }],
  ['a message', '/v1/messages', { model: 'glm-5', messages, max_tokens: 9 }],
  ['an embedding', '/v1/embeddings', { model: 'bge-m3', input: 'Hello!' }],
  ['a transcription', '/v1/audio/transcriptions', form],
]

test.each(ENDPOINTS)(
  '%s is reserved only what the routes may cost that its key may use',
  async (_, path, request) => {
    const ask = async ({ key }: { readonly key: string }) => {
      const body = typeof request === 'function' ? request() : JSON.stringify(request)
      return stack.fetch(path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body,
      })
    }
    const served = await ask(await customer({ models: MODELS.map((model) => `standin/${model}`) }))
    expect(served.status).toBe(200)
    expect(await served.text()).toContain('standin')
    const refused = await ask(await customer())
    expect(refused.status).toBe(402)
    expect(await refused.text()).toContain(
      'The balance does not cover the most that this request may cost.',
    )
  },
)
