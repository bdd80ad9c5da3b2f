import { beforeAll, describe, expect, test } from 'vitest'
import { receiptHeadline } from '../../../src/verify/headline.ts'
import { hopOf, judgeOf, judgeReceipt, receiptOf } from '../../support/synthetic-receipt.ts'
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
      claims: { inference_attestation: await hopOf(other, true) },
    })
    const options = { judgeProviderHop: judgeOf(other), requireProvider: true }
    const result = await judgeReceipt(world, text, options)
    expect(failures(result)).toEqual([])
    expect(result.provider).toBe('rejudged')
    expect(receiptHeadline(result)).toMatch('was judged again here, under your own policy.')
    const under = { ...options, judgeProviderHop: judgeOf(world) }
    const refused = failures(await judgeReceipt(world, text, under))
    expect(refused[0]).toMatch(/^inference_attestation\.trust_bundle_header: kid is /)
    expect(refused.at(-1)).toBe('provider_attested: it does not hold under the given policy')
    const nothing = async () => ({ checks: [], notes: [], simulated: false })
    const empty = await judgeReceipt(world, text, { ...options, judgeProviderHop: nothing })
    expectOnly(empty, 'provider_attested', 'it does not hold under the given policy')
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
})
