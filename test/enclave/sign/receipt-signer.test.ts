import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { fromUtf8 } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { receiptClaimsSchema, type ReceiptClaims } from '../../../src/protocol/receipt.ts'
import { makeReceiptKey, type ReceiptKey } from '../../../src/enclave/keys/receipt-key.ts'
import { LinkError } from '../../../src/enclave/link-error.ts'
import { UNATTESTED } from '../../../src/enclave/proofs/inference-hop.ts'
import { createReceiptSigner, type SignerDeps } from '../../../src/enclave/sign/receipt-signer.ts'
import { describeRouterHop } from '../../../src/enclave/sign/router-block.ts'
import { wholeReceipts } from '../../support/signed-receipts.ts'
import { keptEnvelope } from '../envelope/cached-envelope.ts'
import { ask, CLAIMS, signerDeps } from './signing-requests.ts'

let key: ReceiptKey

beforeAll(async () => {
  key = await makeReceiptKey()
})

const deps = (change: Partial<SignerDeps> = {}) => signerDeps(key, change)

async function signReceipts(body: unknown, signer: SignerDeps) {
  const answer = await createReceiptSigner(signer)(body)
  return { kid: answer.kid, heads: answer.heads, receipts: wholeReceipts(answer) }
}

async function open(jws: string): Promise<ReceiptClaims> {
  const { payload } = await compactVerify(jws, await importJWK(key.jwk, 'ES256'), {
    algorithms: ['ES256'],
  })
  return receiptClaimsSchema.parse(JSON.parse(fromUtf8(payload)))
}

async function refusal(body: unknown, change?: Partial<SignerDeps>) {
  const error: unknown = await signReceipts(body, deps(change)).catch((thrown: unknown) => thrown)
  if (error instanceof LinkError) return [error.code, error.status, error.message]
  throw new Error('not refused', { cause: error })
}

describe('signReceipts', () => {
  it('signs a batch in its order, each under the receipt key', async () => {
    const asks = Array.from({ length: 20 }, () => ask())
    const { kid, receipts } = await signReceipts({ receipts: asks }, deps())
    const opened = await Promise.all(receipts.map(({ jws }) => open(jws)))
    expect(opened.map(({ jti }) => jti)).toEqual(asks.map(({ claims }) => claims.jti))
    expect(kid).toBe(key.kid)
    const { jws = '' } = receipts[0] ?? {}
    expect(decodeProtectedHeader(jws)).toEqual({ alg: 'ES256', kid: key.kid, typ: 'receipt+jwt' })
  })

  it('says of both hops what was verified and what was not', async () => {
    const { receipts } = await signReceipts({ receipts: [ask()] }, deps())
    const claims = await open(receipts[0]?.jws ?? '')
    expect(claims).toMatchObject(CLAIMS)
    expect(claims.router_attestation).toMatchObject({
      tee: 'sev-snp',
      measurement: '33'.repeat(48),
      workload_identity_tag: '22'.repeat(32),
      workload_identity_manifest_jws: 'a.b.c',
      trust_bundle_url: '/.well-known/trust.json',
      trust_bundle_jws: 'd.e.f',
      verified: true,
      verification_mode: 'snp-envelope',
      verified_at: 1_700_000_000,
      attestation_strength: 'simulated',
      evidence_summary: { product: 'genoa', dbgstat: 'disabled', vmpl: 0 },
    })
    expect(claims.inference_attestation).toEqual({
      tee: 'unknown',
      verified: false,
      verification_mode: 'none',
      attestation_strength: 'none',
    })
    expect(claims.receipt_signature).toEqual({
      kid: key.kid,
      alg: 'ES256',
      verified: true,
      verification_mode: 'snp-envelope',
      verified_at: 1_700_000_000,
    })
  })

  it('puts small evidence into the receipt and refers to large evidence', async () => {
    const small = keptEnvelope()
    const large = keptEnvelope({ padding: 8192 })
    const sign = async (envelope: typeof small) => {
      const hop = describeRouterHop({ envelope, trustBundleJws: '', platform: 'configfs-tsm' })
      const { receipts } = await signReceipts({ receipts: [ask()] }, deps({ routerHop: () => hop }))
      const { router_attestation: block } = await open(receipts[0]?.jws ?? '')
      expect(block.attestation_strength).toBe('hardware')
      return [block.evidence_raw, receipts[0]?.evidence_refs]
    }
    expect(await sign(small)).toEqual([small.envelope, []])
    const reference = { sha256: large.sha256, bytes: large.json.length }
    expect(await sign(large)).toEqual([reference, [large.sha256]])
  })

  it('signs any text of a claim, wherever the claims begin in the payload', async () => {
    const routed_model = 'nova/"glm"\\\n-\u{1f600}\u00e9'
    const opened = await Promise.all(
      ['', '.', '..'].map(async (trustBundleJws) => {
        const hop = describeRouterHop({
          envelope: keptEnvelope(),
          trustBundleJws,
          platform: 'simulated',
        })
        const asks = [ask({ routed_model }), ask()]
        const { receipts } = await signReceipts({ receipts: asks }, deps({ routerHop: () => hop }))
        return Promise.all(receipts.map(({ jws }) => open(jws)))
      }),
    )
    for (const [first, second] of opened) {
      expect(first).toMatchObject({ ...CLAIMS, routed_model })
      expect(second).toMatchObject(CLAIMS)
    }
  })

  it('repeats what was required of the provider, and signs none that did not meet it', async () => {
    const constraints = { min: 'none', providers: ['nova'] }
    const { receipts } = await signReceipts({ receipts: [ask({ constraints })] }, deps())
    expect((await open(receipts[0]?.jws ?? '')).constraints).toEqual(constraints)
    const unmet = (name: string) => [
      'constraints_unmet',
      412,
      `the provider did not meet \`${name}\``,
    ]
    for (const [name, more] of [
      ['min', { min: 'simulated' }],
      ['providers', { providers: ['vega'] }],
      ['evidence_sha256', { evidence_sha256: ['e1'.repeat(32)] }],
    ] as const) {
      const body = { receipts: [ask(), ask({ constraints: more })] }
      expect(await refusal(body)).toEqual(unmet(name))
    }
    expect(await refusal({ receipts: [ask({ constraints: { max: 'none' } })] })).toEqual([
      'invalid_request',
      400,
      'claims of the wrong form at receipts.0.claims.constraints',
    ])
  })

  it('signs under what is proven at the time', async () => {
    const router = (issued: number) =>
      describeRouterHop({
        envelope: keptEnvelope({ issued }),
        trustBundleJws: '',
        platform: 'simulated',
      })
    const inference = (tee: string) => ({ ...UNATTESTED, block: { ...UNATTESTED.block, tee } })
    const routers = [router(1), router(2)]
    const providers = { nova: inference('tdx'), vega: inference('sev-snp') }
    let current = routers[0]
    const sign = createReceiptSigner(
      deps({
        routerHop: () => current,
        proofs: { hop: (provider) => providers[provider === 'nova' ? 'nova' : 'vega'] },
      }),
    )
    const batch = { receipts: [ask(), ask({}, { provider: 'vega' }), ask()] }
    for (const now of [...routers, ...routers]) {
      current = now
      // One batch after the other, under another envelope each.
      const opened = await Promise.all(wholeReceipts(await sign(batch)).map(({ jws }) => open(jws)))
      expect(opened.map((claims) => claims.inference_attestation?.tee)).toEqual([
        'tdx',
        'sev-snp',
        'tdx',
      ])
      expect(opened.map((claims) => claims.router_attestation)).toEqual(
        Array.from({ length: 3 }, () => now?.block),
      )
    }
  })

  it('answers what receipts have in common once, and the digest of each whole', async () => {
    const asks = [ask(), ask({}, { provider: 'vega' }), ask(), ask()]
    const large = keptEnvelope({ padding: 8192 })
    const hop = describeRouterHop({ envelope: large, trustBundleJws: '', platform: 'simulated' })
    const vega = {
      block: { ...UNATTESTED.block, verification_mode: 'vega' },
      evidenceRefs: ['e1'.repeat(32)],
    }
    const sign = createReceiptSigner(
      deps({
        routerHop: () => hop,
        proofs: { hop: (provider) => (provider === 'vega' ? vega : UNATTESTED) },
      }),
    )
    const answer = await sign({ receipts: asks })
    expect(answer.receipts.map(({ head }) => head)).toEqual([0, 1, 0, 0])
    expect(answer.heads.map((head) => head.evidence_refs)).toEqual([
      [large.sha256],
      [large.sha256, 'e1'.repeat(32)],
    ])
    const digests = await Promise.all(answer.heads.map(({ text = '' }) => sha256Hex(text)))
    expect(answer.heads.map(({ sha256 }) => sha256)).toEqual(digests)
    for (const { jws, sha256 } of wholeReceipts(answer)) {
      expect(sha256).toBe(await sha256Hex(jws))
    }
    const later = await sign({ receipts: [ask()] })
    expect(later.heads).toEqual([answer.heads[0]])
    const [, known] = answer.heads
    const told = await sign({ receipts: asks, known_head: known?.sha256 })
    const { sha256, evidence_refs: refs } = known ?? {}
    expect(told.heads).toEqual([answer.heads[0], { sha256, evidence_refs: refs }])
  })

  it('has in a head nothing of an exchange, not even what its provider signed of it', async () => {
    const messageKey = { algorithm: 'ed25519', address: 'ab'.repeat(32) } as const
    const texts = ['first text that was signed', 'second text that was signed']
    const left = [...texts]
    const sign = createReceiptSigner(
      deps({
        proofs: { hop: () => ({ ...UNATTESTED, messageKey }) },
        proveMessage: async () => ({ status: 'verified', text: left.shift() ?? '' }),
      }),
    )
    const shared = await Promise.all(
      [ask({ requested_route: 'private-route' }), ask()].map((one) => sign({ receipts: [one] })),
    )
    expect(new Set(shared.map(({ heads }) => heads[0]?.text)).size).toBe(1)
    const [, payload = ''] = shared[0]?.heads[0]?.text?.split('.') ?? []
    const common = Buffer.from(payload, 'base64url').toString()
    expect(common).toContain('"verification_mode":"none"')
    for (const own of ['message_attestation', ...texts, 'private-route', CLAIMS.request_digest]) {
      expect(common).not.toContain(own)
    }
    const opened = await Promise.all(
      shared.flatMap(wholeReceipts).map(async ({ jws }) => {
        const { inference_attestation: hop } = await open(jws)
        return hop?.message_attestation?.['text']
      }),
    )
    expect(new Set(opened)).toEqual(new Set(texts))
  })

  it('adds the message proof of a provider to its hop', async () => {
    const messageKey = { algorithm: 'ed25519', address: 'ab'.repeat(32) } as const
    const asked: unknown[] = []
    const signer = deps({
      proofs: {
        hop: (provider) => (provider === 'nova' ? { ...UNATTESTED, messageKey } : UNATTESTED),
      },
      proveMessage: async (message) => {
        asked.push(message)
        return { status: 'verified' }
      },
    })
    const about = { provider_response_id: 'chatcmpl-1', upstream_model: 'zai/GLM' }
    const { receipts } = await signReceipts(
      { receipts: [ask({}, about), ask({}, { provider: 'vega' })] },
      signer,
    )
    const [claims, other] = await Promise.all(receipts.map(({ jws }) => open(jws)))
    if (claims === undefined) throw new Error('no receipt')
    expect(other?.inference_attestation).toEqual(UNATTESTED.block)
    expect(claims.inference_attestation?.message_attestation).toEqual({ status: 'verified' })
    expect(asked).toEqual([
      {
        provider: 'nova',
        key: messageKey,
        responseId: 'chatcmpl-1',
        upstreamModel: 'zai/GLM',
        requestDigest: claims.request_digest,
        responseDigest: claims.response_digest,
      },
    ])
  })

  it.each([
    ['no batch', null, 'claims of the wrong form at the top'],
    ['an empty batch', { receipts: [] }, 'claims of the wrong form at receipts'],
    [
      'an unknown claim',
      { receipts: [ask({ note: 'x' })] },
      'claims of the wrong form at receipts.0.claims',
    ],
    [
      'an unknown member',
      { receipts: [ask({}, { note: 'x' })] },
      'claims of the wrong form at receipts.0',
    ],
    [
      'a digest that is none',
      { receipts: [ask({ request_digest: 'A1'.repeat(32) })] },
      'claims of the wrong form at receipts.0.claims.request_digest',
    ],
    [
      'claims that the daemon makes',
      { receipts: [ask({ receipt_signature: {} })] },
      'claims of the wrong form at receipts.0.claims',
    ],
    [
      'more than 256',
      { receipts: Array.from({ length: 257 }, () => ask()) },
      'claims of the wrong form at receipts',
    ],
  ])('refuses %s', async (_what, body, message) => {
    expect(await refusal(body)).toEqual(['invalid_request', 400, message])
  })

  it.each([
    ['evidence nobody verified', ask({}, { evidence_sha256: 'ee'.repeat(32) })],
    ['an attested provider without evidence', ask({}, { provider: 'vega' })],
    ['a provider nobody configured', ask({}, { provider: 'nobody' })],
  ])('signs nothing of a batch with %s', async (_what, bad) => {
    expect(await refusal({ receipts: [ask(), bad] })).toEqual([
      'unknown_evidence',
      400,
      'no such evidence was verified for this provider',
    ])
  })

  it('signs nothing of a batch with a configuration that no evidence of the router binds', async () => {
    const bad = ask({}, { configuration_sha256: 'ee'.repeat(32) })
    expect(await refusal({ receipts: [ask(), bad] })).toEqual([
      'unknown_evidence',
      400,
      'no evidence of this instance binds this configuration',
    ])
  })
})
