import { z } from 'zod'
import { toBase64, toHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'
import type { JsonValue } from '../../src/protocol/canonical-json.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import type { AttestationBlock, ReceiptClaims } from '../../src/protocol/receipt.ts'
import { envelopeProviderJudge } from '../../src/verify/provider-envelope.ts'
import { judgeEnvelope, releaseRootPolicy } from '../../src/verify/providers/envelope.ts'
import type { JudgeProviderHop } from '../../src/verify/receipt-provider.ts'
import type { RouterTrust } from '../../src/verify/receipt-router.ts'
import { verifyReceipt, type ReceiptOptions, type ReceiptResult } from '../../src/verify/receipt.ts'
import { MEASUREMENT, NOW, revocationList } from './synthetic-snp.ts'
import { envelopeOf, signBundle, signJws, type TestKey, type World } from './synthetic-world.ts'

/** A receipt of the world's router whose hop refers to the world's envelope. */

export const RECEIPT_ID = '0b0e7c9a-6c1e-4d55-9e3c-0d2f6a6c1b11'
export const ISSUED = NOW / 1000 - 30

export interface ReceiptChanges {
  readonly header?: Record<string, JsonValue | undefined>
  readonly claims?: Partial<ReceiptClaims>
  readonly router?: Partial<AttestationBlock>
  readonly key?: TestKey
  /** Refers to the envelope by digest instead of holding it. */
  readonly byReference?: boolean
}

/** The block of a hop on the world's chip. */
export async function hopOf(world: World, byReference = false): Promise<AttestationBlock> {
  const json = JSON.stringify(await envelopeOf(world))
  return {
    tee: 'sev-snp',
    measurement: toHex(MEASUREMENT),
    workload_identity_tag: world.tag,
    workload_identity_manifest_jws: world.manifestJws,
    trust_bundle_jws: await signBundle(world),
    verified: true,
    verification_mode: 'snp-envelope',
    verified_at: ISSUED - 30,
    attestation_strength: 'hardware',
    evidence_raw: byReference
      ? { sha256: await retainEvidence(json), bytes: utf8(json).length }
      : z.record(z.string(), z.json()).parse(JSON.parse(json)),
  }
}

const PROVIDER_NONCE = 'a1'.repeat(32)

/** The block that a router signs of a provider on the world's chip, which it asked with a nonce of its own. */
export async function providerHopOf(
  world: World,
  more: Partial<AttestationBlock> = {},
): Promise<AttestationBlock> {
  const report_data_binding = {
    label: 'cmr/report-data/v1',
    receipt_key_thumbprint: world.receiptKey.kid,
    nonce: PROVIDER_NONCE,
  } as const
  const snp_crl_b64 = toBase64(await revocationList([], { issuer: world.chain.arkName }))
  const envelope = JSON.stringify(
    await envelopeOf(world, { claimed: { report_data_binding, snp_crl_b64 } }),
  )
  const verifiedAt = (ISSUED - 30) * 1000
  const judged = await judgeEnvelope(
    {
      envelope,
      trust_bundle_jws: await signBundle(world),
      nonce: PROVIDER_NONCE,
      tls_spki_sha256: world.spki,
    },
    releaseRootPolicy(world.root.jwk, {}),
    { now: verifiedAt, simulated: 'refuse', anchors: anchorsOf(world) },
  )
  return {
    ...judged.claims,
    verified: true,
    verification_mode: judged.verification_mode,
    verified_at: ISSUED - 30,
    attestation_strength: judged.attestation_strength,
    evidence_summary: { ...judged.evidence_summary, ...judged.binding },
    evidence_raw: { sha256: await retainEvidence(envelope), bytes: utf8(envelope).length },
    ...more,
  }
}

/** What `GET /attestation/{sha256}` would serve. */
export const evidence = new Map<string, Bytes>()

async function retainEvidence(json: string): Promise<string> {
  const sha256 = await sha256Hex(json)
  evidence.set(sha256, utf8(json))
  return sha256
}

export async function receiptOf(world: World, changes: ReceiptChanges = {}): Promise<string> {
  const key = changes.key ?? world.receiptKey
  const { kid } = world.receiptKey
  const claims = {
    jti: RECEIPT_ID,
    iat: ISSUED,
    requested_route: 'glm-5',
    routed_model: 'eu/nova/glm-5',
    prompt_tokens: 3,
    completion_tokens: 5,
    request_digest: await sha256Hex('provider request'),
    response_digest: await sha256Hex('provider response'),
    digest_version: 1,
    failover: false,
    client_request_digest: await sha256Hex('client request'),
    client_response_digest: await sha256Hex('client response'),
    router_attestation: { ...(await hopOf(world, changes.byReference)), ...changes.router },
    receipt_signature: {
      kid,
      alg: 'ES256',
      verified: true,
      verification_mode: 'snp-envelope',
      verified_at: ISSUED - 30,
    },
    ...changes.claims,
  } satisfies ReceiptClaims
  const header = { alg: 'ES256', kid, typ: 'receipt+jwt', ...changes.header }
  return signJws(header, JSON.stringify(claims), key)
}

/** Verifies a receipt as a client would who holds the router's release root. */
export async function judgeReceipt(
  world: World,
  text: string,
  options: Partial<ReceiptOptions> & { readonly trust?: Partial<RouterTrust> } = {},
): Promise<ReceiptResult> {
  const { jwk, kid } = world.receiptKey
  const { trust, ...more } = options
  return verifyReceipt(text, {
    now: NOW,
    jwks: { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] },
    anchors: [{ product: 'genoa', spkiSha256: world.chain.arkSpkiSha256 }],
    evidence,
    router: { rootJwk: world.root.jwk, environments: ['production'], ...trust },
    ...more,
  })
}

/** Judges a provider's hop as a client would who holds the provider's release root. */
export function judgeOf(
  provider: World,
  options: Parameters<typeof envelopeProviderJudge>[1] = {},
): JudgeProviderHop {
  const trust = { rootJwk: provider.root.jwk, environments: ['production'] }
  return envelopeProviderJudge(trust, { anchors: anchorsOf(provider), ...options })
}

/** The roots of these worlds, taken for AMD's. */
export function anchorsOf(...worlds: readonly World[]) {
  return worlds.map(({ chain }) => ({ product: chain.product, spkiSha256: chain.arkSpkiSha256 }))
}
