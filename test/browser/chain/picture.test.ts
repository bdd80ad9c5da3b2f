import { describe, expect, test } from 'vitest'
import type { BoxDefinition } from '../../../src/browser/chain/box-definition.ts'
import { PICTURES } from '../../../src/browser/chain/boxes.ts'
import { boxOfCheck, drawPicture } from '../../../src/browser/chain/picture.ts'
import { PROVES } from '../../../src/verify/check-names.ts'
import type { Check } from '../../../src/verify/check.ts'

const check = (name: string, ok = true): Check => ({ name, ok, detail: '', proves: '' })

const ALL: readonly BoxDefinition[] = Object.values(PICTURES).flat()

function statesOf(kind: keyof typeof PICTURES, checks: readonly Check[], read: string[] = []) {
  const boxes = drawPicture(kind, { checks, malformed: [], read })
  return Object.fromEntries(boxes.map(({ id, state }) => [id, state]))
}

describe('the picture', () => {
  test('has a place for every check that the verifier makes, and one alone', () => {
    for (const name of Object.keys(PROVES)) {
      const places = new Set(
        ALL.filter(({ checks }) => checks.some((one) => one === name)).map(({ id }) => id),
      )
      expect([name, places.size]).toEqual([name, 1])
    }
  })

  test('has boxes that rest on boxes of the same picture, and never on themselves', () => {
    for (const [kind, boxes] of Object.entries(PICTURES)) {
      const ids = boxes.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      for (const box of boxes) {
        for (const below of box.restsOn)
          expect([kind, ids]).toEqual([kind, expect.arrayContaining([below])])
      }
    }
    // It ends, so nothing goes round in a circle.
    expect(drawPicture('receipt', { checks: [], malformed: [], read: [] })).toHaveLength(
      PICTURES.receipt.length,
    )
  })

  test('turns the box of a failed check red, and leaves what rests on it unknown', () => {
    const states = statesOf(
      'router',
      [check('ark_pinned'), check('report_signature', false), check('report_data', false)],
      ['attestation envelope'],
    )
    expect(states).toMatchObject({
      evidence: 'holds',
      chip: 'holds',
      report: 'failed',
      identity: 'moot',
      nonce: 'moot',
      allowed: 'moot',
      bundle: 'open',
    })
  })

  test('calls everything simulated that rests on a simulated platform, and nothing else', () => {
    const checks = ['simulated_platform', 'report_signature', 'trust_bundle_signature'].map(
      (name) => check(name),
    )
    expect(statesOf('router', checks, ['attestation envelope'])).toMatchObject({
      evidence: 'holds',
      chip: 'simulated',
      report: 'simulated',
      bundle: 'holds',
    })
  })

  test('never says that bytes were compared, or a provider verified, where only something else was checked', () => {
    const beside = ['receipt_signature', 'receipt_id', 'endpoint', 'constraints'].map((name) =>
      check(name),
    )
    const recorded = check('inference_attestation.simulated_platform')
    expect(statesOf('receipt', [...beside, recorded])).toMatchObject({
      receipt: 'holds',
      exchange: 'open',
      provider: 'open',
    })
    const answer = [...beside, check('client_response_digest')]
    expect(statesOf('receipt', answer)).toMatchObject({ exchange: 'open' })
    const compared = [check('client_request_digest'), check('provider_attested')]
    expect(statesOf('receipt', [...answer, ...compared])).toMatchObject({
      exchange: 'holds',
      provider: 'holds',
    })
    expect(statesOf('receipt', [...beside, check('receipt_id', false)])).toMatchObject({
      exchange: 'failed',
    })
  })

  test('distinguishes a receipt hop of the router from one of the provider', () => {
    const find = (name: string) => boxOfCheck(PICTURES.receipt, name)
    expect(find('router_attestation.report_signature')).toBe('report')
    expect(find('inference_attestation.report_signature')).toBe('provider')
    expect(find('provider_attestation.hop_evidence')).toBe('provider')
    expect(find('receipt_key')).toBe('binding')
    expect(find('no such check')).toBeUndefined()
  })

  test('puts a member of the envelope that has not its form into its own box', () => {
    const boxOf = (reason: string) =>
      drawPicture('router', {
        checks: [],
        malformed: [{ document: 'attestation envelope', reason }],
        read: [],
      }).find(({ state }) => state === 'failed')?.id
    expect(boxOf('snp_crl_b64: not standard base64')).toBe('revocation')
    expect(boxOf('report_data_binding.nonce: not 64 lowercase hex digits')).toBe('binding')
    expect(boxOf('tls_spki_sha256: not 64 lowercase hex digits')).toBe('identity')
    expect(boxOf('document: Invalid input')).toBe('evidence')
    expect(boxOf('not JSON')).toBe('evidence')
  })
})
