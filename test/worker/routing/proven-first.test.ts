import { describe, expect, it } from 'vitest'
import type { ProviderProof } from '../../../src/protocol/provider-proof.ts'
import type { PlannedAttempt } from '../../../src/worker/routing/plan.ts'
import {
  dependsOnProof,
  provenAttempts,
  strongestFirst,
} from '../../../src/worker/routing/proven-first.ts'
import { pricedRoute } from '../../support/routes.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')

function attempt(
  name: string,
  adapter: 'none' | 'envelope' = 'envelope',
  entry = 0,
): PlannedAttempt {
  const route = pricedRoute(undefined)
  const provider = { ...route.provider, name, adapter }
  return {
    route: { ...route, id: `${name}/glm`, provider },
    entry,
    failover: entry > 0,
    effort: undefined,
  }
}

function proof(provider: string, strength: string | null, endsInMs = 60_000): ProviderProof {
  const proven = strength !== null
  return {
    provider,
    adapter: 'envelope',
    state: proven ? 'verified' : 'failed',
    reason: null,
    verified_at: proven ? new Date(NOW).toISOString() : null,
    expires_at: proven ? new Date(NOW + endsInMs).toISOString() : null,
    attestation_strength: strength,
    evidence_sha256: proven ? 'e1'.repeat(32) : null,
    checks: [],
  }
}

const names = (attempts: readonly PlannedAttempt[]) =>
  attempts.map(({ route }) => route.provider.name)

describe('attempts by what is proven', () => {
  it('cost nothing at a provider whose proof failed, lapsed or never was', () => {
    const attempts = ['failed', 'lapsed', 'unknown', 'proven'].map((name) => attempt(name))
    const proofs = [
      proof('failed', null),
      proof('lapsed', 'hardware', 0),
      proof('proven', 'hardware'),
    ]
    expect(names(provenAttempts(attempts, proofs, NOW))).toEqual(['proven'])
  })

  it('keep providers that need no proof, whatever the daemon says of them', () => {
    const attempts = [attempt('failed'), attempt('plain', 'none')]
    expect(names(provenAttempts(attempts, [proof('plain', null)], NOW))).toEqual(['plain'])
  })

  it('all stay where none is proven, for the daemon to say why', () => {
    const attempts = [attempt('failed'), attempt('lapsed')]
    expect(provenAttempts(attempts, [], NOW)).toEqual(attempts)
  })

  it('go to the strongest first within an entry, and never across entries', () => {
    const attempts = [
      attempt('plain', 'none'),
      attempt('os'),
      attempt('strong'),
      attempt('other', 'none', 1),
      attempt('strong-too', 'envelope', 1),
    ]
    const proofs = [
      proof('plain', 'hardware'),
      proof('os', 'hardware-os-unpinned'),
      proof('strong', 'hardware'),
      proof('strong-too', 'hardware'),
    ]
    expect(names(strongestFirst(attempts, proofs))).toEqual([
      'strong',
      'os',
      'plain',
      'strong-too',
      'other',
    ])
  })

  it('keep the configured order among equals', () => {
    const attempts = ['c', 'a', 'b'].map((name) => attempt(name))
    const proofs = ['a', 'b', 'c'].map((name) => proof(name, 'hardware'))
    expect(names(strongestFirst(attempts, proofs))).toEqual(['c', 'a', 'b'])
  })

  it('depend on proofs only where there is a choice, and one that needs a proof', () => {
    expect(dependsOnProof([attempt('one')])).toBe(false)
    expect(dependsOnProof([attempt('a', 'none'), attempt('b', 'none')])).toBe(false)
    expect(dependsOnProof([attempt('a', 'none'), attempt('b')])).toBe(true)
  })
})
