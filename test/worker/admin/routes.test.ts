import { describe, expect, test } from 'vitest'
import type { ProviderProof } from '../../../src/protocol/provider-proof.ts'
import { listRoutes, ROUTES_OPERATION } from '../../../src/worker/admin/routes.ts'
import type { Handler } from '../../../src/worker/context.ts'

const NOW = Date.parse('2026-11-22T12:00:00Z')

const PROOF: ProviderProof = {
  provider: 'nova',
  adapter: 'dstack',
  state: 'verified',
  reason: null,
  verified_at: '2026-11-22T11:30:00.000Z',
  expires_at: '2026-11-22T12:30:00.000Z',
  attestation_strength: 'hardware',
  evidence_sha256: 'ab'.repeat(32),
  checks: [{ name: 'quote', ok: true }],
}

const PRICING = { currency: 'eur', input_per_mtok: 1, output_per_mtok: 2 }

function routeOf(provider: string, adapter: string, pricing?: object) {
  return {
    id: `${provider}/glm-5`,
    provider: { name: provider, adapter },
    config: { type: 'chat', ...(pricing && { pricing }) },
  }
}

const ROUTES = [routeOf('nova', 'dstack', PRICING), routeOf('vega', 'none'), routeOf('new', 'aci')]

async function ask(providers: () => Promise<readonly ProviderProof[]>): Promise<unknown> {
  const parts = {
    adminToken: 'boot',
    now: () => NOW,
    catalogue: { routes: ROUTES },
    health: {
      snapshot: (_now: number, routes: typeof ROUTES) =>
        routes.map(({ id, provider }) => ({
          route: id,
          model_key: 'glm-5',
          provider: provider.name,
          region: null,
          state: 'closed',
          errors: 0,
          last_failure: null,
          retry_at: null,
          latency_ms: null,
        })),
    },
    link: { providers },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that this handler touches
  const context = parts as unknown as Parameters<Handler>[1]
  const request = new Request('http://r/', { headers: { authorization: 'Bearer boot' } })
  const json: unknown = await (await listRoutes(request, context, {})).json()
  const [described] = Object.values(ROUTES_OPERATION.answer)
  expect(described?.schema.parse(json)).toEqual(json)
  return json
}

describe('GET /admin/routes', () => {
  test('has health, price and the proof of the provider behind each route', async () => {
    const none = { verified_at: null, attestation_strength: null, evidence_sha256: null }
    expect(
      await ask(async () => [
        PROOF,
        {
          ...PROOF,
          ...none,
          provider: 'vega',
          adapter: 'none',
          state: 'unattested',
          expires_at: null,
        },
      ]),
    ).toMatchObject({
      data: [
        {
          route: 'nova/glm-5',
          state: 'closed',
          type: 'chat',
          pricing: PRICING,
          proof: {
            adapter: 'dstack',
            state: 'verified',
            attestation_strength: 'hardware',
            verified_at: PROOF.verified_at,
            evidence_sha256: PROOF.evidence_sha256,
          },
        },
        { route: 'vega/glm-5', pricing: null, proof: { adapter: 'none', state: 'unattested' } },
        { route: 'new/glm-5', proof: { adapter: 'aci', state: 'pending', ...none } },
      ],
    })
  })

  test('shows the health also where the daemon does not answer, and claims no proof then', async () => {
    const away = () => Promise.reject(new Error('away'))
    expect(await ask(away)).toMatchObject({
      data: ROUTES.map(({ id }) => ({ route: id, state: 'closed', proof: { state: 'unknown' } })),
    })
  })
})
