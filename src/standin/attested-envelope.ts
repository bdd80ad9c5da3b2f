import { sha256Hex } from '../protocol/digest.ts'
import { MANIFEST_SCHEMA } from '../protocol/manifest.ts'
import { buildEnvelope } from '../enclave/envelope/build-envelope.ts'
import { composeBundle } from '../enclave/release/bundle-document.ts'
import { signManifest, signTrustBundle } from '../enclave/release/sign-documents.ts'
import { makeSigningKey, type SigningKey } from '../enclave/release/signing-key.ts'
import type { SimulatedChain } from '../enclave/simulated/chain.ts'
import { createSimulatedSource, simulatedMeasurement } from '../enclave/snp/simulated-source.ts'
import { toHex } from '../protocol/bytes.ts'

/** The documents that a host of `service.attestation/v1` publishes. */
export interface EnvelopeHost {
  /** JSON of an envelope for this nonce, 64 hex digits or empty. */
  envelope(nonce: string): Promise<string>
  /** JSON of the published trust bundle. */
  readonly trust: string
}

export interface EnvelopeHostInputs {
  /** Signs the bundle; relying parties pin its public half. */
  readonly root: SigningKey
  /** The simulated chip of this guest. */
  readonly chain: SimulatedChain
  /** Digest of this guest's TLS key. */
  readonly tlsSpkiSha256: string
  /** Milliseconds. */
  readonly now: () => number
}

const VALIDITY_DAYS = 30
const NO_FLOOR = { bootloader: 0, tee: 0, snp: 0, microcode: 0 }

/** A guest on a simulated chip that publishes its evidence like another router. */
export async function openEnvelopeHost(inputs: EnvelopeHostInputs): Promise<EnvelopeHost> {
  const { root, chain, tlsSpkiSha256, now } = inputs
  const [manifestKey, receiptKey] = await Promise.all([
    makeSigningKey({ extractable: false }),
    makeSigningKey({ extractable: false }),
  ])
  const manifestJws = await signManifest(MANIFEST, manifestKey)
  const identityTag = await sha256Hex(manifestJws)
  const measurement = await simulatedMeasurement(identityTag)
  const bundle = composeBundle({
    template: { environment: 'local', tcb_floor: { [chain.product]: floorOf(chain) } },
    version: Math.floor(now() / 1000),
    allowed: [{ measurement: toHex(measurement), workload: 'router', identityTag }],
    manifestKey: { jwk: manifestKey.publicJwk, days: VALIDITY_DAYS },
    now: new Date(now()),
    days: VALIDITY_DAYS,
  })
  const source = createSimulatedSource(chain, measurement)
  const subject = {
    kid: receiptKey.kid,
    tlsSpkiSha256,
    identityTag,
    manifestJws,
    trustBundleUrl: '/.well-known/trust.json',
    // The stand-in has no configuration, so this is the digest of the empty text.
    configurationSha256: await sha256Hex(''),
    hpkeKeyConfigSha256: '',
  }
  return {
    envelope: async (nonce) => (await buildEnvelope(source, subject, { nonce, now })).json,
    trust: JSON.stringify({ trust_bundle_jws: await signTrustBundle(bundle, root) }),
  }
}

function floorOf({ product }: SimulatedChain) {
  return product === 'turin' ? { ...NO_FLOOR, fmc: 0 } : NO_FLOOR
}

const MANIFEST = {
  schema: MANIFEST_SCHEMA,
  workload: 'router',
  version: '0.0.0',
  image_digest: `sha256:${'0'.repeat(64)}`,
  binary_digest: `sha256:${'0'.repeat(64)}`,
  build_metadata: { build_type: 'stand-in', reproducible: false },
}
