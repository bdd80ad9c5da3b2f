import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { EvidenceRefused } from '../../../src/verify/evidence-refused.ts'
import type { VerifiedEvidence } from '../../../src/enclave/adapters/verified-evidence.ts'
import { EvidenceRefresher } from '../../../src/enclave/proofs/evidence-refresher.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'

const LIFE_S = 3600
const SPKI = 'ab'.repeat(32)

beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

async function evidence(change: Partial<VerifiedEvidence> = {}): Promise<VerifiedEvidence> {
  const raw = new TextEncoder().encode('{}')
  return {
    verified: true,
    verification_mode: 'test',
    checks: ['nonce', 'tls_key'],
    attestation_strength: 'hardware',
    binding: { tls_spki_sha256: SPKI },
    verified_at: Date.now() / 1000,
    expires_at: Date.now() / 1000 + LIFE_S,
    evidence_digest: await sha256Hex('{}'),
    evidence_summary: {},
    evidence_raw: raw,
    claims: {},
    ...change,
  }
}

/** A keeper whose verification gives what the list says, the last of it for ever. */
function keeper(...outcomes: (() => Promise<VerifiedEvidence>)[]) {
  let calls = 0
  const kept: VerifiedEvidence[] = []
  const logged: object[] = []
  const one = new EvidenceRefresher({
    obtain: () => {
      const outcome = outcomes[Math.min(calls++, outcomes.length - 1)]
      return outcome ? outcome() : Promise.reject(new Error('none'))
    },
    now: Date.now,
    random: () => 0,
    onVerified: (verified) => void kept.push(verified),
    changed: () => {},
    log: (event, fields) => void logged.push({ event, ...fields }),
  })
  return { one, kept, logged, calls: () => calls }
}

const refused = async () => Promise.reject(new EvidenceRefused('measurement'))
const outage = async () => Promise.reject(new EvidenceRefused('unreachable'))
const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms)

describe('a proof', () => {
  it('is pending until it is there', async () => {
    const { one, kept } = keeper(evidence)
    expect(one.standing).toMatchObject({ state: 'pending', reason: 'not verified yet' })
    expect(one.current).toBeUndefined()
    await one.verify()
    expect(one.standing).toMatchObject({
      state: 'verified',
      reason: null,
      verified_at: '2027-01-15T08:00:00.000Z',
      expires_at: '2027-01-15T09:00:00.000Z',
      checks: [
        { name: 'nonce', ok: true },
        { name: 'tls_key', ok: true },
      ],
    })
    expect(kept).toEqual([one.current])
    one.close()
  })

  it('is renewed before it ends, by one verification at a time', async () => {
    const { one, calls } = keeper(evidence)
    await Promise.all([one.verify(), one.verify(), one.verify()])
    expect(calls()).toBe(1)
    await wait(LIFE_S * 1000 * 0.79)
    expect(calls()).toBe(1)
    await wait(LIFE_S * 1000 * 0.02)
    expect(calls()).toBe(2)
    one.close()
    await wait(LIFE_S * 10_000)
    expect(calls()).toBe(2)
  })

  it('stays in force through an outage and ends at its time', async () => {
    const { one } = keeper(evidence, outage)
    await one.verify()
    await wait(LIFE_S * 900)
    expect(one.standing.state).toBe('verified')
    await wait(LIFE_S * 101)
    expect(one.standing).toMatchObject({
      state: 'failed',
      reason: 'the provider did not answer with its evidence',
      // Nothing was judged.
      checks: [],
      verified_at: null,
      expires_at: null,
    })
    expect(one.current).toBeUndefined()
    one.close()
  })

  it('ends at once when the evidence no longer holds', async () => {
    const { one } = keeper(evidence, refused)
    await one.verify()
    await wait(LIFE_S * 810)
    expect(one.standing).toMatchObject({
      state: 'failed',
      reason: 'the measurement is not one the operator allows',
      checks: [{ name: 'measurement', ok: false }],
    })
    one.close()
  })

  it('is logged when it fails: refused evidence by its reason, an unexpected failure by its place', async () => {
    const bug = () => Promise.reject(new TypeError('their words'))
    const { one, logged } = keeper(refused, bug)
    await one.verify()
    await one.verify()
    expect(logged).toEqual([
      {
        event: 'attestation_failed',
        reason: 'the measurement is not one the operator allows',
      },
      {
        event: 'attestation_failed',
        reason: 'verification broke down',
        error: 'TypeError',
        frames: expect.arrayContaining([expect.stringContaining('evidence-refresher')]),
      },
    ])
    one.close()
  })

  it('is retried at growing intervals, and reveals nothing of an unexpected failure', async () => {
    const { one, calls } = keeper(() => Promise.reject(new Error('their words')))
    await one.verify()
    expect(one.standing).toMatchObject({ state: 'failed', reason: 'verification broke down' })
    await wait(1_000)
    expect(calls()).toBe(2)
    await wait(2_000)
    expect(calls()).toBe(3)
    await wait(600_000)
    expect(calls()).toBeLessThan(18)
    one.close()
  })

  it('fails when verification takes for ever', async () => {
    const { one } = keeper(() => new Promise(() => {}))
    const verifying = one.verify()
    await wait(60_000)
    await verifying
    expect(one.standing.reason).toBe('the provider did not answer with its evidence')
    one.close()
  })

  it.each<[string, Partial<VerifiedEvidence>, string]>([
    [
      'without a key to pin',
      { binding: { tls_spki_sha256: '' } },
      'the evidence binds no TLS key, so nothing ties a connection to it',
    ],
    ['without time left', { expires_at: 1_800_000_000 }, 'the evidence has no time left'],
    ['with another digest', { evidence_digest: 'ff'.repeat(32) }, 'a document cannot be read'],
  ])('%s is none', async (_what, change, reason) => {
    const { one, kept } = keeper(() => evidence(change))
    await one.verify()
    expect(one.standing).toMatchObject({ state: 'failed', reason })
    expect(kept).toEqual([])
    one.close()
  })
})

describe('a peer with another key', () => {
  it('has the proof verified again, once for all callers that noticed', async () => {
    const other = { binding: { tls_spki_sha256: 'cd'.repeat(32) } }
    const { one, calls } = keeper(evidence, () => evidence(other))
    await one.verify()
    const stale = one.current
    if (stale === undefined) throw new Error('no proof')
    const renewed = await Promise.all([one.reverify(stale), one.reverify(stale)])
    expect(calls()).toBe(2)
    expect(renewed).toEqual([one.current, one.current])
    expect(await one.reverify(stale)).toBe(one.current)
    expect(calls()).toBe(2)
    one.close()
  })

  it('leaves the provider unproven while that goes on', async () => {
    const { one } = keeper(evidence, () => new Promise(() => {}))
    await one.verify()
    const stale = one.current
    if (stale === undefined) throw new Error('no proof')
    void one.reverify(stale)
    expect(one.current).toBeUndefined()
    expect(one.standing.reason).toBe('the peer holds another key than its evidence vouches for')
    one.close()
  })

  it('that shows yet another one is not tried for a while', async () => {
    const { one, calls } = keeper(evidence)
    await one.verify()
    if (one.current) one.distrust(one.current)
    expect(one.standing).toMatchObject({
      state: 'failed',
      reason: 'the peer changes its key faster than it proves it',
    })
    await wait(1_000)
    expect(calls()).toBe(2)
    await one.verify()
    expect(one.standing.state).toBe('verified')
    one.close()
  })
})
