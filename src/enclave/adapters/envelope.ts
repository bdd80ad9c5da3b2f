import { fromUtf8, toBase64, type Bytes } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { publishedTrustBundleSchema } from '../../protocol/trust-bundle.ts'
import { readEnvelope } from '../../verify/envelope-hardware.ts'
import { judgeEnvelope, type EnvelopeEvidence } from '../../verify/providers/envelope.ts'
import type { SeenBundle } from '../../verify/trust-bundle.ts'
import { judgeOptions, type Adapter, type EvidenceSubject, type EvidenceTools } from './adapter.ts'
import { sealEvidence } from './verified-evidence.ts'

const MAX_ENVELOPE_BYTES = 262_144
const MAX_BUNDLE_BYTES = 1_048_576

type Subject = EvidenceSubject<'envelope'>

/**
 * Another host that publishes `service.attestation/v1`, this router included: envelope for our nonce, and its trust
 * bundle -> judged. Its hosts sign their own certificates, so the pin alone decides. The envelope as it was served is
 * what is kept, because the trust bundle stands in the receipt beside it.
 */
export const envelopeAdapter: Adapter<'envelope'> = {
  webPki: false,
  open(subject, tools) {
    let lastSeen: SeenBundle | undefined
    return async () => {
      const evidence = await gather(subject, tools)
      const options = judgeOptions(subject, tools)
      const environments = subject.mode === 'local' ? ['local'] : []
      const { endsAt, seen, ...judged } = await judgeEnvelope(evidence, subject.policy, {
        ...options,
        environments,
        lastSeen,
      })
      lastSeen = seen
      const sealed = await sealEvidence(judged, evidence.envelope, {
        now: options.now,
        maxAgeSeconds: subject.policy.max_age_seconds,
      })
      return { ...sealed, expires_at: Math.floor(endsAt / 1000) }
    }
  },
}

/** The bundle comes from the provider's own origin; no address that the envelope names is ever asked. */
async function gather(subject: Subject, tools: EvidenceTools): Promise<EnvelopeEvidence> {
  const nonce = tools.newNonce()
  const path = `attestation?nonce=${nonce}`
  const { body, tlsSpkiSha256 } = await fetchDocument(subject, tools, path, MAX_ENVELOPE_BYTES)
  const bundle = await fetchDocument(subject, tools, '.well-known/trust.json', MAX_BUNDLE_BYTES)
  const document = 'published trust bundle'
  const published = parseStrictJson(bundle.body, document)
  return {
    envelope: await withRevocationList(body, tools),
    trust_bundle_jws: readDocument(publishedTrustBundleSchema, published, document)
      .trust_bundle_jws,
    nonce,
    tls_spki_sha256: tlsSpkiSha256,
  }
}

/** The newest list that AMD gave us, even where the envelope brings one. Nothing in an envelope signs that member. */
async function withRevocationList(body: Bytes, tools: EvidenceTools): Promise<string> {
  const envelope = readEnvelope(body)
  const list = await tools.findRevocationList(envelope.vcek_chain_pem)
  if (list === undefined) return fromUtf8(body)
  return JSON.stringify({ ...envelope, snp_crl_b64: toBase64(list) })
}

function fetchDocument(
  { baseUrl }: Subject,
  { observedFetch }: EvidenceTools,
  path: string,
  maxBytes: number,
) {
  const url = new URL(`/${path}`, baseUrl).href
  return observedFetch({ url, maxBytes, webPki: envelopeAdapter.webPki })
}
