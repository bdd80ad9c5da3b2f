import { fromUtf8, toBase64, type Bytes } from '../../protocol/bytes.ts'
import { readDocument } from '../../protocol/read-document.ts'
import { parseStrictJson } from '../../protocol/strict-json.ts'
import { publishedTrustBundleSchema } from '../../protocol/trust-bundle.ts'
import { readEnvelope } from '../../verify/envelope-hardware.ts'
import { judgeEnvelope, type EnvelopeEvidence } from '../../verify/providers/envelope.ts'
import { judgeOptions, type Adapter, type EvidenceSubject, type EvidenceDeps } from './adapter.ts'
import { sealEvidence } from './verified-evidence.ts'

const MAX_ENVELOPE_BYTES = 262_144
const MAX_BUNDLE_BYTES = 1_048_576

type Subject = EvidenceSubject<'envelope'>

/**
 * Another host that publishes `service.attestation/v1`, such as this router. Fetches the envelope for our nonce and the
 * trust bundle, and judges both. Such hosts sign their own certificates, so only the pinned key counts. The envelope is
 * stored as it was served, apart from AMD's revocation list; the receipt holds the trust bundle beside it.
 */
export const envelopeAdapter: Adapter<'envelope'> = {
  webPki: false,
  open(subject, deps, memory) {
    return async () => {
      const evidence = await fetchEvidence(subject, deps)
      const options = judgeOptions(subject, deps)
      const environments = subject.mode === 'local' ? ['local'] : []
      const { accepted, ...judged } = await judgeEnvelope(evidence, subject.policy, {
        ...options,
        environments,
        lastAccepted: memory.lastAccepted,
      })
      memory.lastAccepted = accepted
      return sealEvidence(judged, evidence.envelope, {
        now: options.now,
        maxAgeSeconds: subject.policy.max_age_seconds,
      })
    }
  },
}

/** The bundle comes from the provider's own origin; an address named in the envelope is never used. */
async function fetchEvidence(subject: Subject, deps: EvidenceDeps): Promise<EnvelopeEvidence> {
  const nonce = deps.newNonce()
  const path = `attestation?nonce=${nonce}`
  const { body, tlsSpkiSha256 } = await fetchDocument(subject, deps, path, MAX_ENVELOPE_BYTES)
  const bundle = await fetchDocument(subject, deps, '.well-known/trust.json', MAX_BUNDLE_BYTES)
  const document = 'published trust bundle'
  const published = parseStrictJson(bundle.body, document)
  return {
    envelope: await withRevocationList(body, deps),
    trust_bundle_jws: readDocument(publishedTrustBundleSchema, published, document)
      .trust_bundle_jws,
    nonce,
    tls_spki_sha256: tlsSpkiSha256,
  }
}

/**
 * Inserts AMD's newest revocation list, even where the envelope contains one: no signature covers that member of the
 * envelope.
 */
async function withRevocationList(body: Bytes, deps: EvidenceDeps): Promise<string> {
  const envelope = readEnvelope(body)
  const list = await deps.findRevocationList(envelope.vcek_chain_pem)
  if (list === undefined) return fromUtf8(body)
  return JSON.stringify({ ...envelope, snp_crl_b64: toBase64(list) })
}

function fetchDocument(
  { baseUrl }: Subject,
  { observedFetch }: EvidenceDeps,
  path: string,
  maxBytes: number,
) {
  const url = new URL(`/${path}`, baseUrl).href
  return observedFetch({ url, maxBytes, webPki: envelopeAdapter.webPki })
}
