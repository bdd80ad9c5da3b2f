import { beforeAll, describe, expect, test } from 'vitest'
import { judge } from '../../../src/verify/check.ts'
import { receiptHeadline } from '../../../src/verify/headline.ts'
import { MalformedEvidence } from '../../../src/protocol/malformed-evidence.ts'
import type { AttestationBlock } from '../../../src/protocol/receipt.ts'
import {
  hopOf,
  ISSUED,
  judgeOf,
  judgeReceipt,
  providerHopOf,
  receiptOf,
} from '../../support/synthetic-receipt.ts'
import { makeWorld, type World } from '../../support/synthetic-world.ts'
import { expectOnly, failures } from '../../support/verdicts.ts'

let world: World
let other: World
beforeAll(async () => {
  ;[world, other] = await Promise.all([makeWorld(), makeWorld()])
})

const UNATTESTED = { verified: false, verification_mode: 'none', attestation_strength: 'none' }

describe("a provider's hop", () => {
  test('an unattested provider is told, and fails only where an attested one is required', async () => {
    const text = await receiptOf(world, { claims: { inference_attestation: UNATTESTED } })
    const told = await judgeReceipt(world, text)
    expect(failures(told)).toEqual([])
    expect(told.notes).toContain('inference_attestation: the provider was not attested (none)')
    expect(receiptHeadline(told)).toMatch(/^VALID: .* The provider was not attested\.$/)
    const required = await judgeReceipt(world, text, { requireProvider: true })
    expectOnly(required, 'provider_attested', 'the provider was not attested (none)')
  })

  test("a provider's hop on the router's word alone is told, and is no attested one", async () => {
    const invented = {
      tee: 'tdx',
      verified: true,
      verification_mode: 'dstack-tdx',
      attestation_strength: 'hardware',
      evidence_raw: { quote: 'AAAA' },
    }
    const text = await receiptOf(world, { claims: { inference_attestation: invented } })
    const told = await judgeReceipt(world, text)
    const recorded = 'recorded by the router, not re-judged (dstack-tdx)'
    expect(failures(told)).toEqual([])
    expect(told.provider).toBe('recorded')
    expect(told.notes).toContain(`inference_attestation: ${recorded}`)
    expect(receiptHeadline(told)).toMatch('is recorded by the router, not re-judged.')
    const required = await judgeReceipt(world, text, { requireProvider: true })
    expectOnly(required, 'provider_attested', recorded)
  })

  test("a provider's hop is judged again by the judge that the caller gives", async () => {
    const text = await receiptOf(world, {
      claims: { inference_attestation: await providerHopOf(other) },
    })
    const options = { judgeProviderHop: judgeOf(other), requireProvider: true }
    const result = await judgeReceipt(world, text, options)
    expect(failures(result)).toEqual([])
    expect(result.provider).toBe('rejudged')
    expect(receiptHeadline(result)).toMatch('was judged again here, under your own policy.')
    const under = { ...options, judgeProviderHop: judgeOf(world) }
    const refused = failures(await judgeReceipt(world, text, under))
    expect(refused[0]).toMatch(/^inference_attestation\.provider_policy: .*trust_bundle_header/)
    expect(refused.at(-1)).toBe('provider_attested: it does not hold under the given policy')
    const nothing = async () => ({ checks: [], notes: [], simulated: false })
    const empty = await judgeReceipt(world, text, { ...options, judgeProviderHop: nothing })
    expectOnly(empty, 'provider_attested', 'it does not hold under the given policy')
  })

  test("the library's judge of envelopes demands what the command and the router demand", async () => {
    const block = await providerHopOf(other)
    const judged = async (
      change: Partial<AttestationBlock>,
      options: Parameters<typeof judgeOf>[1] = {},
    ) => {
      const inference_attestation = { ...block, ...change }
      const text = await receiptOf(world, { claims: { inference_attestation } })
      const result = await judgeReceipt(world, text, { judgeProviderHop: judgeOf(other, options) })
      return failures(result).slice(0, -1)
    }
    // A router's own envelope: no nonce of the router that asked, no revocation list.
    const cached = await hopOf(other, true)
    const { evidence_raw } = cached
    expect(await judged({ evidence_raw })).toEqual([
      'inference_attestation.provider_policy: the evidence was not made for our nonce (nonce)',
    ])
    expect(await judged({ evidence_raw }, { nonce: 'optional' })).toEqual([
      expect.stringMatching(/^inference_attestation\.provider_policy: .*\((nonce|revocation)\)$/),
    ])
    expect(await judged({ evidence_summary: {} })).toEqual([
      expect.stringMatching(/^inference_attestation\.provider_policy: .*\(tls_key\)$/),
    ])
    expect(await judged({ verified_at: ISSUED - 2 * 3_600 - 61 })).toEqual([
      'inference_attestation.hop_age: it was older than the policy allows',
      expect.stringMatching(/^inference_attestation\.provider_policy: /),
    ])
    expect(await judged({ verified_at: ISSUED + 3_600 })).toContain(
      'inference_attestation.hop_age: it was verified after the receipt was issued',
    )
    const message_attestation = { status: 'verified', text: 'x', signature: 'y' }
    expect(await judged({ message_attestation })).toEqual([
      'inference_attestation.message_signature: no key that the evidence vouches for signs messages',
    ])
    expect(() => judgeOf(other, { max_age_seconds: 1 })).toThrow(
      new MalformedEvidence(
        'provider policy',
        'max_age_seconds: Too small: expected number to be >=60',
      ),
    )
  })

  test('a provider that the router calls simulated fails by that name unless it is allowed', async () => {
    const block = { ...(await hopOf(other)), attestation_strength: 'simulated' }
    const text = await receiptOf(world, { claims: { inference_attestation: block } })
    expectOnly(
      await judgeReceipt(world, text),
      'inference_attestation.simulated_platform',
      'a simulated platform, and none is allowed',
    )
    const unattested = { ...UNATTESTED, attestation_strength: 'simulated' }
    const unverified = await receiptOf(world, { claims: { inference_attestation: unattested } })
    expectOnly(
      await judgeReceipt(world, unverified),
      'inference_attestation.simulated_platform',
      'a simulated platform, and none is allowed',
    )
    const allowed = await judgeReceipt(world, text, { simulated: 'any' })
    expect(failures(allowed)).toEqual([])
    expect(receiptHeadline(allowed)).toMatch(/^VALID ON A SIMULATED PLATFORM/)
  })

  test('a simulated provider is called simulated where it is judged again, too', async () => {
    const block = { ...(await hopOf(other)), attestation_strength: 'simulated' }
    const text = await receiptOf(world, { claims: { inference_attestation: block } })
    const judgeProviderHop = async () => ({
      checks: [judge('hop_evidence', undefined, 'of a simulated platform')],
      notes: [],
      simulated: true,
    })
    const allowed = await judgeReceipt(world, text, { judgeProviderHop, simulated: 'any' })
    expect(failures(allowed)).toEqual([])
    const ofHop = allowed.checks.filter(({ name }) => name.startsWith('inference_'))
    expect(ofHop.map(({ name, ok, detail }) => [name, ok, detail])).toEqual([
      ['inference_attestation.hop_evidence', true, 'of a simulated platform'],
      ['inference_attestation.simulated_platform', true, 'allowed'],
    ])
    const refused = await judgeReceipt(world, text, { judgeProviderHop })
    expect(failures(refused)).toEqual([
      'inference_attestation.simulated_platform: a simulated platform, and none is allowed',
      'provider_attested: it does not hold under the given policy',
    ])
    const said = await receiptOf(world, {
      claims: { inference_attestation: { ...block, attestation_strength: 'hardware' } },
    })
    expect(failures(await judgeReceipt(world, said, { judgeProviderHop }))).toEqual(
      failures(refused),
    )
  })
})
