import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Context } from '../../../src/worker/context.ts'
import { listModels, retrieveModel } from '../../../src/worker/models/handler.ts'
import type { Catalogue } from '../../../src/worker/routing/catalogue.ts'
import { told } from '../../support/refusal.ts'
import { catalogueOf, reasoningOf, tokenPrice, unitPrice } from '../../support/router-config.ts'
import { cpuMs } from '../../support/cpu-time.ts'

const CATALOGUE = catalogueOf(
  {
    'eu/nova/glm': {
      precision: 'fp8',
      reasoning: reasoningOf('medium', 'high'),
      prompt_caching: { supported: true, verified: true },
      pricing: { ...tokenPrice('eur', 0.6, 2.2), cache_input_per_mtok: 0.1 },
    },
    'us/nova/glm': { precision: 'fp8', pricing: tokenPrice('usd', 1, 2) },
    'eu/orbit/glm': { pricing: undefined },
    'lone/whisper': { type: 'transcription', pricing: unitPrice('audio_minute', 0.01) },
    'eu/orbit/embed': { type: 'embedding', pricing: { currency: 'eur', input_per_mtok: 0.1 } },
  },
  { usd_eur: 0.5, auto: ['glm'] },
)

const UNATTESTED = { attested: false, adapters: [] }

const ALL_IDS = [
  'glm',
  'eu/glm',
  'us/glm',
  'nova/glm',
  'eu/nova/glm',
  'us/nova/glm',
  'orbit/glm',
  'whisper',
  'lone/whisper',
  'embed',
  'eu/embed',
  'orbit/embed',
]

const entrySchema = z.looseObject({ id: z.string(), service: z.looseObject({}).optional() })
const listSchema = z.strictObject({ object: z.literal('list'), data: z.array(entrySchema) })

const NOW = Date.parse('2026-11-20T12:00:00Z')

function contextOf(catalogue: Catalogue): Context {
  const parts: Partial<Context> = { catalogue, now: () => NOW }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no provider of these entries needs a proof
  return parts as Context
}

async function list(query = '', catalogue = CATALOGUE) {
  const request = new Request(`https://router.example/v1/models${query}`)
  const response = await listModels(request, contextOf(catalogue), {})
  return listSchema.parse(await response.json()).data
}

async function idsOf(query: string): Promise<string[]> {
  return (await list(query)).map(({ id }) => id)
}

async function retrieve(id: string, query = '') {
  const request = new Request(`https://router.example/v1/models/x${query}`)
  const response = await retrieveModel(request, contextOf(CATALOGUE), { id })
  return entrySchema.parse(await response.json())
}

async function detailsOf(id: string) {
  return (await retrieve(id, '?detail=true')).service
}

async function refusalTo(answer: Promise<unknown>) {
  return told(
    await answer.then(
      () => undefined,
      (error: unknown) => error,
    ),
  )
}

describe('GET /v1/models', () => {
  it('lists every entry once, model by model', async () => {
    expect(await idsOf('')).toEqual(ALL_IDS)
  })

  it('is JSON that must not be cached', async () => {
    const request = new Request('https://router.example/v1/models')
    const { status, headers } = await listModels(request, contextOf(CATALOGUE), {})
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('cache-control')).toBe('no-store')
  })

  it.each(['', '?detail=false', '?detail=0', '?unknown=1'])(
    'shows four members without details (%j)',
    async (query) => {
      const [glm, , , , pinned] = await list(query)
      expect(glm).toEqual({ id: 'glm', object: 'model', created: 1767225600, owned_by: 'router' })
      expect(pinned).toEqual({
        id: 'eu/nova/glm',
        object: 'model',
        created: 1767225600,
        owned_by: 'nova',
      })
    },
  )

  it.each(['?detail=true', '?detail=1'])('shows the service block with %s', async (query) => {
    const entries = await list(query)
    expect(entries.map(({ id }) => id)).toEqual(ALL_IDS)
    expect(entries.every(({ service }) => service !== undefined)).toBe(true)
  })

  it.each([
    ['?model_key=embed', ['embed', 'eu/embed', 'orbit/embed']],
    ['?region=us', ['us/glm', 'us/nova/glm']],
    ['?provider=nova', ['nova/glm', 'eu/nova/glm', 'us/nova/glm']],
    ['?type=transcription', ['whisper', 'lone/whisper']],
    ['?type=embedding', ['embed', 'eu/embed', 'orbit/embed']],
    ['?route_id=glm', ['glm']],
    ['?route_id=orbit/glm', ['orbit/glm']],
    ['?route_id=eu%2Forbit%2Fglm', ['orbit/glm']],
    ['?region=eu&provider=orbit', ['orbit/glm', 'orbit/embed']],
    ['?region=eu&type=chat', ['eu/glm', 'eu/nova/glm', 'orbit/glm']],
    ['?route_id=eu/orbit/glm&region=eu&provider=orbit&model_key=glm&type=chat', ['orbit/glm']],
    ['?route_id=orbit/glm&region=us', []],
    ['?model_key=glm&type=embedding', []],
    ['?model_key=gpt', []],
    ['?region=ap', []],
    ['?provider=other', []],
    ['?route_id=us/orbit/glm', []],
    ['?route_id=auto', []],
  ])('filters by %s', async (query, ids) => {
    expect(await idsOf(query)).toEqual(ids)
    expect(await idsOf(`${query}&detail=true`)).toEqual(ids)
  })

  it.each([
    ['detail', 'yes', 'true, false, 1 or 0'],
    ['detail', '', 'true, false, 1 or 0'],
    ['model_key', 'a/b', 'a name of letters, digits, ".", "_" and "-"'],
    ['region', '', 'a name of letters, digits, ".", "_" and "-"'],
    ['provider', '%00', 'a name of letters, digits, ".", "_" and "-"'],
    ['route_id', 'a/b/c/d', 'one to three names with "/" between them'],
    ['type', 'image', 'one of chat, transcription, embedding'],
  ])('refuses %s=%s', async (param, value, expected) => {
    expect(await refusalTo(list(`?${param}=${value}`))).toEqual({
      code: 'invalid_parameter',
      message: `The query parameter \`${param}\` must be ${expected}, given once.`,
      param,
    })
  })

  it('prints entries once, so ten thousand routes are listed without building them again', async () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `eu/p${n % 50}/m${n}`)
    const large = catalogueOf(Object.fromEntries(names.map((name) => [name, {}])))
    await list('?detail=true&model_key=m1', large)
    const before = cpuMs()
    for (let n = 0; n < 20; n++) {
      expect(await list(`?detail=true&model_key=m${n}`, large)).toHaveLength(3)
    }
    expect(cpuMs() - before).toBeLessThan(1_000)
  })
})

describe('the service block', () => {
  it('of a concrete entry is the route as configured', async () => {
    expect(await detailsOf('eu/nova/glm')).toEqual({
      model_key: 'glm',
      route_kind: 'concrete',
      region: 'eu',
      provider: 'nova',
      type: 'chat',
      attestation: UNATTESTED,
      pricing: {
        currency: 'eur',
        input_per_mtok: 0.6,
        output_per_mtok: 2.2,
        cache_input_per_mtok: 0.1,
      },
      precision: 'fp8',
      prompt_caching: { supported: true, verified: true },
      reasoning: { supported_efforts: ['medium', 'high'], default_effort: 'medium' },
    })
  })

  it('of a concrete entry in two parts carries its region; without a price it has none', async () => {
    expect(await detailsOf('orbit/glm')).toEqual({
      model_key: 'glm',
      route_kind: 'concrete',
      region: 'eu',
      provider: 'orbit',
      attestation: UNATTESTED,
      type: 'chat',
    })
  })

  it('of a provider entry speaks for its routes only', async () => {
    expect(await detailsOf('nova/glm')).toEqual({
      model_key: 'glm',
      route_kind: 'provider',
      provider: 'nova',
      type: 'chat',
      attestation: UNATTESTED,
      pricing: {
        currency: 'eur',
        input_per_mtok: 0.6,
        output_per_mtok: 2.2,
        cache_input_per_mtok: 0.5,
        pricing_type: 'variable',
      },
      precision: 'fp8',
      prompt_caching: { supported: false, verified: false },
      reasoning: { supported_efforts: ['medium', 'high'], guaranteed_efforts: [] },
    })
  })

  it('of a region entry is variable even with one route behind it', async () => {
    expect(await detailsOf('us/glm')).toEqual({
      model_key: 'glm',
      route_kind: 'region',
      region: 'us',
      type: 'chat',
      attestation: UNATTESTED,
      pricing: { ...tokenPrice('usd', 1, 2), pricing_type: 'variable' },
      precision: 'fp8',
    })
  })

  it('of a logical entry skips routes without a price and disagrees on precision', async () => {
    const details = await detailsOf('glm')
    expect(details).toMatchObject({ route_kind: 'logical', pricing: { currency: 'eur' } })
    expect(details).not.toHaveProperty('precision')
    expect(details).not.toHaveProperty('region')
    expect(details).not.toHaveProperty('provider')
  })

  it('of a unit-priced aggregate publishes the unit', async () => {
    expect(await detailsOf('whisper')).toMatchObject({
      type: 'transcription',
      pricing: { ...unitPrice('audio_minute', 0.01), pricing_type: 'variable' },
    })
  })
})

describe('GET /v1/models/{id}', () => {
  it.each(ALL_IDS)('answers %s as the list shows it', async (id) => {
    const listed = (await list()).find((entry) => entry.id === id)
    expect(await retrieve(id)).toEqual(listed)
  })

  it('answers a compatibility id with the canonical entry', async () => {
    expect(await retrieve('eu/orbit/embed')).toMatchObject({ id: 'orbit/embed' })
  })

  it.each(['gpt', 'auto', '', 'eu', 'a/b/c/d', 'glm/'])('knows no model %j', async (id) => {
    expect(await refusalTo(retrieve(id))).toEqual({
      code: 'model_not_found',
      message: 'No model has this id.',
      param: 'model',
    })
  })

  it('refuses a malformed detail', async () => {
    expect(await refusalTo(retrieve('glm', '?detail=2'))).toEqual({
      code: 'invalid_parameter',
      message: 'The query parameter `detail` must be true, false, 1 or 0, given once.',
      param: 'detail',
    })
  })
})
