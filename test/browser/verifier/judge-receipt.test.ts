import { beforeAll, describe, expect, test } from 'vitest'
import { judgeReceipt, type ReceiptReport } from '../../../src/browser/verifier/judge-receipt.ts'
import { memoryState } from '../../../src/client/memory-state.ts'
import { toHex, utf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { providerJudge } from '../../../src/verify/providers/provider-judge.ts'
import { releaseRootPolicy } from '../../../src/verify/providers/envelope.ts'
import {
  anchorsOf,
  evidence,
  providerHopOf,
  RECEIPT_ID,
  receiptOf,
} from '../../support/synthetic-receipt.ts'
import { MEASUREMENT, NOW } from '../../support/synthetic-snp.ts'
import { makeWorld, signBundle, type World } from '../../support/synthetic-world.ts'

let router: World
let provider: World

beforeAll(async () => {
  ;[router, provider] = await Promise.all([makeWorld(), makeWorld()])
}, 60_000)

/** The page's verdict on a receipt, where the browser remembers this bundle of the provider's root. */
async function judge(remembered: string, version: number): Promise<ReceiptReport> {
  const inference_attestation = await providerHopOf(provider)
  const text = await receiptOf(router, { claims: { inference_attestation } })
  const { jwk, kid } = router.receiptKey
  const state = memoryState()
  const sha256 = await sha256Hex(remembered)
  await state.write({ root: provider.root.kid, version, sha256, jws: remembered })
  return judgeReceipt(
    {
      text,
      id: '',
      apiKey: '',
      evidence: [...evidence.values()],
      jwks: { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] },
      bundles: [],
      request: undefined,
      response: undefined,
      providerPolicy: releaseRootPolicy(provider.root.jwk, {}),
    },
    undefined,
    {
      rootJwk: router.root.jwk,
      environments: ['production'],
      allowSimulated: false,
      requireCrl: false,
      crl: undefined,
      logPolicy: undefined,
    },
    {
      now: () => NOW,
      nonce: () => 'a1'.repeat(32),
      state,
      anchors: anchorsOf(router),
      providerJudge: (policy, options) =>
        providerJudge(policy, { ...options, anchors: anchorsOf(provider) }),
    },
  )
}

describe('a receipt on the verifier page', () => {
  test('is refused by a newer bundle that another tab stored while the router took its time to answer', async () => {
    const { jwk, kid } = router.receiptKey
    const state = memoryState()
    const revoked = { measurements: [toHex(MEASUREMENT)] }
    const newer = await signBundle(router, { version: 8, revoked })
    const older = await signBundle(router, { version: 6 })
    const slow: typeof fetch = async () => {
      const sha256 = await sha256Hex(newer)
      await state.write({ root: router.root.kid, version: 8, sha256, jws: newer })
      return Response.json({ trust_bundle_jws: older })
    }
    const jwks = { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] }
    const input = { text: await receiptOf(router), jwks, id: '', apiKey: '', evidence: [] }
    const report = await judgeReceipt(
      {
        ...input,
        bundles: [],
        request: undefined,
        response: undefined,
        providerPolicy: undefined,
      },
      {
        base: new URL('https://router.test'),
        fetch: slow,
        get: async () => ({ status: 404, body: new Uint8Array() }),
      },
      {
        rootJwk: router.root.jwk,
        environments: ['production'],
        allowSimulated: false,
        requireCrl: false,
        crl: undefined,
        logPolicy: undefined,
      },
      { now: () => NOW, nonce: () => 'a1'.repeat(32), state, anchors: anchorsOf(router) },
    )
    expect(report.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([
      'router_attestation.not_revoked',
    ])
    expect(await state.read(router.root.jwk)).toMatchObject({ version: 8 })
  })

  test('is not asked for, and nor is its evidence, with an API key that everybody on the way could read', async () => {
    const { jwk, kid } = router.receiptKey
    const receipt = await receiptOf(router, { byReference: true })
    const sent: string[] = []
    const ask = (text: string, apiKey = 'key') =>
      judgeReceipt(
        {
          text,
          id: RECEIPT_ID,
          apiKey,
          evidence: [],
          jwks: { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] },
          bundles: [],
          request: undefined,
          response: undefined,
          providerPolicy: undefined,
        },
        {
          base: new URL('http://router.test'),
          fetch: async () => new Response(null, { status: 404 }),
          get: async (_path, headers = {}) => {
            sent.push(...Object.values(headers))
            return { status: 404, body: new Uint8Array() }
          },
        },
        {
          rootJwk: router.root.jwk,
          environments: ['production'],
          allowSimulated: false,
          requireCrl: false,
          crl: undefined,
          logPolicy: undefined,
        },
        { now: () => NOW, nonce: () => 'a1'.repeat(32), state: memoryState() },
      )
    // The evidence of the second one is not given, and the router has no such envelope.
    for (const text of ['', receipt]) {
      await expect(ask(text)).rejects.toThrow(
        'The API key is not sent to http://router.test in the clear: give an https address, or receipt and evidence as files.',
      )
    }
    const { checks } = await ask(receipt, '')
    expect(checks.find(({ name }) => name === 'receipt_signature')).toMatchObject({ ok: true })
    expect(sent).toEqual([])
  })

  test.each([
    ['holds', RECEIPT_ID, []],
    ['is refused', 'another-id', ['receipt_id']],
  ])('that the router gave for an id %s where it is the one of %s', async (_, id, failed) => {
    const { jwk, kid } = router.receiptKey
    const receipt = await receiptOf(router)
    const report = await judgeReceipt(
      {
        text: '',
        id,
        apiKey: 'key',
        evidence: [],
        jwks: { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] },
        bundles: [],
        request: undefined,
        response: undefined,
        providerPolicy: undefined,
      },
      {
        base: new URL('https://router.test'),
        fetch: async () => new Response(null, { status: 404 }),
        get: async (path) =>
          path === `/v1/receipts/${id}`
            ? // A router that lies tells the id of what it gives.
              { status: 200, body: utf8(JSON.stringify({ id: RECEIPT_ID, receipt })) }
            : { status: 404, body: new Uint8Array() },
      },
      {
        rootJwk: router.root.jwk,
        environments: ['production'],
        allowSimulated: false,
        requireCrl: false,
        crl: undefined,
        logPolicy: undefined,
      },
      {
        now: () => NOW,
        nonce: () => 'a1'.repeat(32),
        state: memoryState(),
        anchors: anchorsOf(router),
      },
    )
    expect(report.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(failed)
    expect(report.checks.map(({ name }) => name)).toContain('receipt_id')
  })
})

describe("a provider's hop on the verifier page", () => {
  test('holds under a newer bundle of its root that revokes nothing of it', async () => {
    const report = await judge(await signBundle(provider, { version: 8 }), 8)
    expect(report).toMatchObject({ ok: true, provider: 'rejudged' })
  })

  test('is refused by what the browser remembers that its root revoked since', async () => {
    const revoked = { measurements: [toHex(MEASUREMENT)] }
    const report = await judge(await signBundle(provider, { version: 8, revoked }), 8)
    expect(report.ok).toBe(false)
    expect(report.checks.filter(({ ok }) => !ok).map(({ name, detail }) => [name, detail])).toEqual(
      [
        ['inference_attestation.provider_policy', expect.stringContaining('not_revoked')],
        ['provider_attested', 'it does not hold under the given policy'],
      ],
    )
  })
})
