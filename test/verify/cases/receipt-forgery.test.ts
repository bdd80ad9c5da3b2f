import { beforeAll, describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import type { AttestationBlock } from '../../../src/protocol/receipt.ts'
import { receiptHeadline } from '../../../src/verify/headline.ts'
import { ISSUED, judgeReceipt, receiptOf } from '../../support/synthetic-receipt.ts'
import { envelopeOf, makeKey, makeWorld, type World } from '../../support/synthetic-world.ts'
import { expectOnly, failures } from '../../support/verdicts.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
})

const OTHER = 'c'.repeat(64)

/** What an attacker can do who holds a key of their own and no enclave. */
describe('a receipt of a key that no enclave holds', () => {
  /** The receipt of the world's router, signed by a made-up key that stands in a made-up JWKS. */
  async function forge(router: Partial<AttestationBlock>) {
    const key = await makeKey()
    const receipt_signature = {
      kid: key.kid,
      alg: 'ES256',
      verified: true,
      verification_mode: 'snp-envelope',
      verified_at: ISSUED,
    } as const
    const changes = { key, header: { kid: key.kid }, claims: { receipt_signature }, router }
    const options = { jwks: { keys: [{ ...key.jwk, kid: key.kid }] }, requireProvider: false }
    return { text: await receiptOf(world, changes), options, kid: key.kid }
  }

  test('fails without evidence', async () => {
    const { text, options } = await forge({ evidence_raw: undefined })
    const result = await judgeReceipt(world, text, options)
    expect(failures(result)).toEqual([
      'router_attestation.hop_evidence: the receipt names no evidence',
      'receipt_key: the evidence vouches for no receipt key',
    ])
    expect(result).toMatchObject({ ok: false, outcome: 'not_valid' })
  })

  test('fails with a digest that leads nowhere', async () => {
    const { text, options } = await forge({ evidence_raw: { sha256: OTHER, bytes: 9000 } })
    const result = await judgeReceipt(world, text, options)
    expect(failures(result)).toEqual([
      `router_attestation.hop_evidence: the evidence ${OTHER} is not at hand`,
      'receipt_key: the evidence vouches for no receipt key',
    ])
  })

  test('fails with evidence of another schema, or of none', async () => {
    const others = [{ schema: 'service.attestation/v9' }, { tee: 'sev-snp', quote: 'AAAA' }]
    for (const evidence_raw of others) {
      const { text, options } = await forge({ evidence_raw })
      const failed = failures(await judgeReceipt(world, text, options))
      expect(failed).toHaveLength(2)
      expect(failed[0]).toMatch(
        /^router_attestation\.hop_evidence: malformed attestation envelope: schema: /,
      )
    }
  })

  test('fails with evidence that is no JSON, and with a report that is none', async () => {
    const junk = utf8('<html>not found</html>')
    const sha256 = await sha256Hex(junk)
    const reference = { sha256, bytes: junk.length }
    const unreadable = await forge({ evidence_raw: reference })
    const held = new Map([[sha256, junk]])
    const result = await judgeReceipt(world, unreadable.text, {
      ...unreadable.options,
      evidence: held,
    })
    expect(failures(result)[0]).toMatch(/^router_attestation\.hop_evidence: malformed /)
    const envelope = { ...(await envelopeOf(world)), snp_report_b64: 'AAAA' }
    const cut = await forge({ evidence_raw: JSON.parse(JSON.stringify(envelope)) })
    expect(failures(await judgeReceipt(world, cut.text, cut.options))[0]).toMatch(
      /^router_attestation\.hop_evidence: malformed SNP report: /,
    )
  })

  test('fails with the genuine envelope of a router that holds another key', async () => {
    const { text, options } = await forge({})
    expectOnly(
      await judgeReceipt(world, text, options),
      'receipt_key',
      `the evidence vouches for ${world.receiptKey.kid}`,
    )
  })

  test('fails with an envelope that binds no receipt key', async () => {
    const { report_data_binding: _, ...unbound } = await envelopeOf(world)
    const { text, options } = await forge({ evidence_raw: JSON.parse(JSON.stringify(unbound)) })
    expectOnly(
      await judgeReceipt(world, text, options),
      'receipt_key',
      'the evidence vouches for no receipt key',
    )
  })

  test('is never more than a signature where nothing is asked about the machine', async () => {
    const { text, options } = await forge({ evidence_raw: undefined })
    const result = await judgeReceipt(world, text, { ...options, router: 'signature_only' })
    expect(failures(result)).toEqual([])
    expect(result).toMatchObject({ ok: false, outcome: 'signature_only' })
    expect(receiptHeadline(result)).toMatch(
      /^SIGNATURE ONLY: nothing was proven about the machine\. /,
    )
    const named = { ...options, router: 'signature_only', expected: { id: OTHER } } as const
    expect((await judgeReceipt(world, text, named)).outcome).toBe('not_valid')
  })
})
