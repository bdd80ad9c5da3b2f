import type { SimulatedChain } from '../../src/enclave/simulated/chain.ts'
import type { ReportFields } from '../../src/enclave/simulated/report.ts'
import { toBase64, toBase64Url, toHex, utf8, type Bytes } from '../../src/protocol/bytes.ts'
import { canonicalJson, type JsonValue } from '../../src/protocol/canonical-json.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import type { Envelope } from '../../src/protocol/envelope.ts'
import { es256JwkSchema, jwkThumbprint, type Es256Jwk } from '../../src/protocol/jwk.ts'
import { reportData } from '../../src/protocol/report-data.ts'
import type { TrustBundle, TrustBundleInput } from '../../src/protocol/trust-bundle.ts'
import {
  verifyEnvelope,
  type EnvelopeResult,
  type LiveExpectations,
} from '../../src/verify/envelope.ts'
import { verifyTrustBundle } from '../../src/verify/trust-bundle.ts'
import { DAY_MS, MEASUREMENT, NOW, syntheticChain, syntheticReport } from './synthetic-snp.ts'

/** A release root, what it signed, and an instance on a synthetic chip: a whole world that verifies. */
export interface World {
  readonly chain: SimulatedChain
  readonly root: TestKey
  readonly manifestKey: TestKey
  readonly receiptKey: TestKey
  readonly manifestJws: string
  readonly tag: string
  /** SHA-256 over an SPKI, hex. */
  readonly spki: string
}

export interface TestKey {
  readonly privateKey: CryptoKey
  readonly jwk: Es256Jwk
  readonly kid: string
}

export const WORKLOAD = 'router'

export async function makeKey(): Promise<TestKey> {
  const scheme = { name: 'ECDSA', namedCurve: 'P-256' }
  const pair = await crypto.subtle.generateKey(scheme, true, ['sign', 'verify'])
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  const jwk = es256JwkSchema.parse({ kty, crv, x, y })
  return { privateKey: pair.privateKey, jwk, kid: await jwkThumbprint(jwk) }
}

export async function makeWorld(): Promise<World> {
  const [root, manifestKey, receiptKey] = await Promise.all([makeKey(), makeKey(), makeKey()])
  const manifestJws = await signJws(manifestHeader(manifestKey), manifest(), manifestKey)
  return {
    chain: await syntheticChain(),
    root,
    manifestKey,
    receiptKey,
    manifestJws,
    tag: await sha256Hex(manifestJws),
    spki: await sha256Hex('the key of the connection'),
  }
}

export function manifest(changes: Record<string, JsonValue> = {}): JsonValue {
  return {
    schema: 'workload-identity/v1',
    workload: WORKLOAD,
    version: '1.2.3',
    image_digest: `sha256:${'0'.repeat(64)}`,
    binary_digest: `sha256:${'1'.repeat(64)}`,
    build_metadata: {},
    ...changes,
  }
}

export const manifestHeader = ({ kid }: TestKey) => ({
  alg: 'ES256',
  kid,
  typ: 'workload-identity+jwt',
})
export const bundleHeader = ({ kid }: TestKey) => ({ alg: 'ES256', kid, typ: 'trust-bundle+jwt' })

/** A compact JWS with exactly this header and payload; text is taken as it is, anything else as canonical JSON. */
export async function signJws(
  header: JsonValue,
  payload: JsonValue,
  { privateKey }: Pick<TestKey, 'privateKey'>,
): Promise<string> {
  const input = [header, payload].map((part) => toBase64Url(utf8(textOf(part)))).join('.')
  const scheme = { name: 'ECDSA', hash: 'SHA-256' }
  const signature = await crypto.subtle.sign(scheme, privateKey, utf8(input))
  return `${input}.${toBase64Url(new Uint8Array(signature))}`
}

const textOf = (part: JsonValue) => (typeof part === 'string' ? part : canonicalJson(part))

/** RFC 3339 of a moment so many days from the tests' now. */
export const inDays = (days: number) => new Date(NOW + days * DAY_MS).toISOString()

export function bundleOf(world: World, changes: Partial<TrustBundleInput> = {}): TrustBundleInput {
  const entry = {
    measurement: toHex(MEASUREMENT),
    workload: WORKLOAD,
    workload_identity_tag: world.tag,
  }
  return {
    schema: 'trust-bundle/v1',
    version: 7,
    environment: 'production',
    issued_at: inDays(-1),
    not_before: inDays(-1),
    expires_at: inDays(14),
    allowed_measurements: [entry],
    allowed_identity_tags: [world.tag],
    tcb_floor: { genoa: { bootloader: 1, tee: 0, snp: 1, microcode: 1 } },
    delegated_keys: {
      workload_manifest: {
        jwk: world.manifestKey.jwk,
        not_before: inDays(-30),
        not_after: inDays(30),
      },
    },
    ...changes,
  }
}

export async function signBundle(
  world: World,
  changes: Partial<TrustBundleInput> = {},
  key = world.root,
): Promise<string> {
  return signJws(bundleHeader(key), JSON.stringify(bundleOf(world, changes)), key)
}

/** The bundle as the library accepts it. Throws where it does not. */
export async function acceptBundle(
  world: World,
  changes: Partial<TrustBundleInput> = {},
): Promise<TrustBundle> {
  const options = { now: NOW, environments: ['production'] }
  const result = await verifyTrustBundle(await signBundle(world, changes), world.root.jwk, options)
  if (result.bundle === undefined) throw new Error('the bundle of the test is refused')
  return result.bundle
}

export interface EnvelopeChanges {
  /** Members of the envelope that REPORT_DATA then vouches for. */
  readonly claimed?: Partial<Envelope>
  /** Members changed after the report was made. */
  readonly swapped?: Partial<Envelope>
  readonly fields?: ReportFields
}

/** The envelope of the world's instance. */
export async function envelopeOf(world: World, changes: EnvelopeChanges = {}): Promise<Envelope> {
  const claimed = {
    schema: 'service.attestation/v1',
    workload: WORKLOAD,
    vcek_chain_pem: world.chain.pem,
    tls_spki_sha256: world.spki,
    workload_identity_tag: world.tag,
    workload_identity_manifest_jws: world.manifestJws,
    trust_bundle_url: 'https://router.example/.well-known/trust.json',
    issued_at: new Date(NOW - 60_000).toISOString(),
    max_age_seconds: 3600,
    ...changes.claimed,
    report_data_binding: changes.claimed?.report_data_binding ?? {
      label: 'cmr/report-data/v1',
      receipt_key_thumbprint: world.receiptKey.kid,
      nonce: '',
    },
  } as const
  const fields = { reportData: await reportData(claimed), ...changes.fields }
  const report: Bytes = await syntheticReport(world.chain, { fields })
  return { ...claimed, snp_report_b64: toBase64(report), ...changes.swapped }
}

export interface Judgement {
  readonly bundle?: Partial<TrustBundleInput>
  readonly live?: Partial<LiveExpectations>
  readonly now?: number
  /** A later bundle that is known too. */
  readonly newest?: Partial<TrustBundleInput>
  readonly acceptBeforeRevocation?: boolean
  readonly crl?: Bytes
  readonly requireCrl?: boolean
}

/** Verifies an envelope as a client would, the world's root taken for AMD's. */
export async function judgeEnvelope(
  world: World,
  changes: EnvelopeChanges = {},
  { bundle = {}, live, newest, now = NOW, acceptBeforeRevocation, crl, requireCrl }: Judgement = {},
): Promise<EnvelopeResult> {
  const later = newest && (await acceptBundle(world, { version: 8, ...newest }))
  const accepted = await acceptBundle(world, bundle)
  return verifyEnvelope(await envelopeOf(world, changes), {
    now,
    anchors: [{ product: 'genoa', spkiSha256: world.chain.arkSpkiSha256 }],
    trust: {
      bundle: accepted,
      rootJwk: world.root.jwk,
      newest: later,
      acceptBeforeRevocation,
    },
    live: { nonce: null, ...live },
    crl,
    requireCrl,
  })
}
