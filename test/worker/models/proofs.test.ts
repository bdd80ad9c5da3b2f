import { describe, expect, it } from 'vitest'
import type { ProviderProof } from '../../../src/protocol/provider-proof.ts'
import { proofsOf } from '../../../src/worker/models/proofs.ts'
import { pricedRoute } from '../../support/routes.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')

function route(name: string, adapter: 'none' | 'dstack') {
  const base = pricedRoute(undefined)
  return { ...base, id: `${name}/glm`, provider: { ...base.provider, name, adapter } }
}

const proven: ProviderProof = {
  provider: 'nova',
  adapter: 'dstack',
  state: 'verified',
  reason: null,
  verified_at: '2026-11-20T11:59:18.500Z',
  expires_at: '2026-11-20T12:59:18Z',
  attestation_strength: 'hardware',
  evidence_sha256: 'e1'.repeat(32),
  checks: [],
}

const NOTHING = { strength: null, age_seconds: null, expires_at: null }

describe('the proofs of an entry', () => {
  it('say kind, state, strength and age of each route that needs one', () => {
    expect(proofsOf([route('nova', 'dstack'), route('plain', 'none')], [proven], NOW)).toEqual([
      {
        route: 'nova/glm',
        kind: 'dstack',
        state: 'verified',
        strength: 'hardware',
        age_seconds: 41,
        expires_at: '2026-11-20T12:59:18Z',
      },
    ])
  })

  it('say that nothing is proven where it is not, and of a provider that the daemon does not know yet', () => {
    const failed: ProviderProof = {
      ...proven,
      state: 'failed',
      verified_at: null,
      expires_at: null,
      attestation_strength: null,
    }
    const shown = proofsOf([route('nova', 'dstack'), route('vega', 'dstack')], [failed], NOW)
    expect(shown).toMatchObject([
      { route: 'nova/glm', state: 'failed', ...NOTHING },
      { route: 'vega/glm', state: 'pending', ...NOTHING },
    ])
  })

  it('are never younger than now', () => {
    const [ahead] = proofsOf([route('nova', 'dstack')], [proven], NOW - 86_400_000)
    expect(ahead?.age_seconds).toBe(0)
  })
})
