import { describe, expect, it } from 'vitest'
import type { ProviderProof } from '../../../src/protocol/provider-proof.ts'
import type { Constraints } from '../../../src/protocol/constraints.ts'
import { ApiError } from '../../../src/worker/http/errors.ts'
import { acceptedAttempts, needsProofs } from '../../../src/worker/routing/accepted-attempts.ts'
import {
  CHAT_FAILURE_MAPPING,
  EMBEDDING_FAILURE_MAPPING,
  TRANSCRIPTION_FAILURE_MAPPING,
} from '../../../src/worker/routing/failure-mapping.ts'
import type { PlannedAttempt } from '../../../src/worker/routing/plan.ts'
import { refusalOf } from '../../support/refusal.ts'
import { pricedRoute } from '../../support/routes.ts'

const E1 = 'e1'.repeat(32)

function attempt(name: string, adapter: 'none' | 'envelope', failover: boolean): PlannedAttempt {
  const route = pricedRoute(undefined)
  const provider = { ...route.provider, name, adapter }
  const planned = { ...route, id: `${name}/glm`, provider }
  return { route: planned, entry: failover ? 1 : 0, failover, effort: undefined }
}

const ATTEMPTS = [
  attempt('plain', 'none', false),
  attempt('nova', 'envelope', false),
  attempt('vega', 'envelope', true),
  attempt('unproven', 'envelope', true),
]

function proof(provider: string, strength: string | null): ProviderProof {
  return {
    provider,
    adapter: 'envelope',
    state: strength === null ? 'pending' : 'verified',
    reason: null,
    verified_at: null,
    expires_at: null,
    attestation_strength: strength,
    evidence_sha256: strength === null ? null : E1,
    checks: [],
  }
}

const PROOFS = [
  // The daemon would have to be mistaken to say so.
  proof('plain', 'hardware'),
  proof('nova', 'simulated'),
  proof('vega', 'hardware'),
  proof('unproven', null),
]

const accepted = (constraints: Constraints) =>
  acceptedAttempts(ATTEMPTS, constraints, PROOFS).map(({ route }) => route.provider.name)

const NOT_ACCEPTED = {
  code: 'attestation_not_accepted',
  message:
    'No provider of the requested models has the attestation that this request, or its API key, requires.',
  param: 'attestation',
}

describe('attempts that meet what the caller requires', () => {
  it('are those whose provider has the evidence, in their order, of failover too', () => {
    expect(accepted({ min: 'none' })).toEqual(['plain', 'nova', 'vega', 'unproven'])
    expect(accepted({ min: 'simulated' })).toEqual(['nova', 'vega'])
    expect(accepted({ min: 'hardware' })).toEqual(['vega'])
    expect(accepted({ providers: ['unproven', 'plain'] })).toEqual(['plain', 'unproven'])
    expect(accepted({ evidence_sha256: [E1] })).toEqual(['nova', 'vega'])
  })

  it('are none where no provider does', () => {
    expect(refusalOf(() => accepted({ min: 'hardware', providers: ['nova', 'plain'] }))).toEqual(
      NOT_ACCEPTED,
    )
    expect(refusalOf(() => accepted({ evidence_sha256: ['e2'.repeat(32)] }))).toEqual(NOT_ACCEPTED)
    expect(refusalOf(() => acceptedAttempts(ATTEMPTS, { min: 'simulated' }, []))).toEqual(
      NOT_ACCEPTED,
    )
  })

  it('need proofs only where the constraint is about evidence', () => {
    expect(needsProofs({ providers: ['nova'] })).toBe(false)
    expect(needsProofs({ min: 'none' })).toBe(false)
    expect(needsProofs({ min: 'simulated' })).toBe(true)
    expect(needsProofs({ evidence_sha256: [E1] })).toBe(true)
  })
})

describe.each([
  ['chat', CHAT_FAILURE_MAPPING],
  ['embeddings', EMBEDDING_FAILURE_MAPPING],
  ['transcription', TRANSCRIPTION_FAILURE_MAPPING],
])('providers that lost their proof between plan and connection, on %s', (_name, mapping) => {
  const unmet = { kind: 'attestation_not_accepted' } as const

  it('are 412 where there are no others', () => {
    expect(refusalOf(() => mapping.allFailed([unmet, unmet], 2))).toEqual(NOT_ACCEPTED)
    expect(new ApiError('attestation_not_accepted', '').status).toBe(412)
  })

  it('do not count if another one failed otherwise', () => {
    const limited = { kind: 'rate_limited', retryAfterMs: 2000 } as const
    expect(mapping.allFailed([unmet, limited], 2)).toMatchObject({ code: 'upstream_rate_limit' })
  })
})
