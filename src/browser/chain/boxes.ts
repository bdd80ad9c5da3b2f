import type { BoxDefinition } from './box-definition.ts'
import { HARDWARE } from './hardware-boxes.ts'

const EVIDENCE: BoxDefinition = {
  id: 'evidence',
  column: 'binding',
  title: 'Evidence',
  says: 'The router shows a document of evidence that can be read.',
  checks: ['hop_verified', 'hop_evidence', 'hop_age', 'hop_consistent'],
  restsOn: [],
  documents: ['attestation envelope'],
}

const BINDING: readonly BoxDefinition[] = [
  {
    id: 'identity',
    column: 'binding',
    title: 'TLS key and release tag',
    says: 'The report names the key of the TLS connections and the tag of the release.',
    checks: ['report_data', 'tls_key'],
    restsOn: ['report'],
    members: ['tls_spki_sha256', 'workload_identity_tag'],
  },
  {
    id: 'binding',
    column: 'binding',
    title: 'Receipt key and configuration',
    says: 'The report names the key that signs receipts, the one that bodies may be encrypted to, and the configuration in force.',
    checks: ['report_data_binding', 'receipt_key', 'hpke_key', 'configuration'],
    restsOn: ['report'],
    documents: ['HPKE key configuration'],
    members: ['report_data_binding'],
  },
]

const NONCE: BoxDefinition = {
  id: 'nonce',
  column: 'binding',
  title: 'Your nonce',
  says: 'The report was made now, for the random number that this page chose.',
  checks: ['nonce', 'freshness'],
  restsOn: ['binding'],
  members: ['issued_at', 'max_age_seconds'],
}

const RELEASE: readonly BoxDefinition[] = [
  {
    id: 'bundle',
    column: 'release',
    title: 'Trust bundle',
    says: 'The holder of the release root says which guests may be accepted, and since when.',
    checks: [
      'trust_bundle_header',
      'trust_bundle_signature',
      'trust_bundle_dates',
      'trust_bundle_version',
      'trust_bundle_environment',
      'trust_bundle_origin',
    ],
    restsOn: [],
    documents: ['trust bundle', 'published trust bundle'],
  },
  {
    id: 'manifest',
    column: 'release',
    title: 'Manifest',
    says: 'The release key signed what this release is made of.',
    checks: [
      'manifest_key',
      'manifest_header',
      'manifest_signature',
      'manifest_workload',
      'workload_identity_tag',
    ],
    restsOn: ['bundle', 'identity'],
    documents: ['workload manifest'],
    members: ['workload_identity_manifest_jws', 'workload'],
  },
  {
    id: 'allowed',
    column: 'release',
    title: 'Accepted release',
    says: 'The guest that was measured is one of this release, and nothing of it is revoked.',
    checks: ['measurement_allowed', 'not_revoked'],
    restsOn: ['report', 'bundle', 'manifest'],
  },
]

const LOGGED: BoxDefinition = {
  id: 'logged',
  column: 'release',
  title: 'Public record',
  says: 'Bundle and manifest stand in a public log that witnesses watch.',
  checks: ['trust_bundle_logged', 'manifest_logged'],
  restsOn: ['bundle', 'manifest'],
}

const EXCHANGE: readonly BoxDefinition[] = [
  {
    id: 'receipt',
    column: 'exchange',
    title: 'Receipt and its key',
    says: 'The receipt is unchanged since a key signed it that the router published.',
    checks: [
      'receipt_header',
      'receipt_key_known',
      'receipt_signature',
      'receipt_key_context',
      'receipt_time',
    ],
    restsOn: [],
    documents: ['receipt', 'receipt file', 'JWKS'],
  },
  {
    id: 'exchange',
    column: 'exchange',
    title: 'Your request and answer',
    says: 'The receipt is about the very bytes that you sent and got.',
    checks: [
      'receipt_id',
      'endpoint',
      'requested_route',
      'routed_model',
      'client_request_digest',
      'client_response_digest',
      'request_digest',
      'response_digest',
    ],
    decisive: ['client_request_digest', 'client_response_digest'],
    restsOn: ['receipt'],
    documents: ['answer'],
  },
  {
    id: 'provider',
    column: 'exchange',
    title: 'The provider',
    says: 'The provider ran in an enclave that your own policy accepts.',
    checks: ['provider_attested', 'provider_policy', 'message_signature', 'constraints'],
    decisive: ['provider_attested'],
    restsOn: ['receipt'],
    documents: ['provider policy'],
  },
]

const NEWEST: BoxDefinition = {
  id: 'newest',
  column: 'release',
  title: 'Newest bundle',
  says: 'The newest trust bundle at hand tells what has been revoked since.',
  checks: ['newest_bundle'],
  restsOn: [],
  documents: ['published trust bundle', 'trust bundle'],
}

/** The boxes that show the proof of a running router, and those that show the proof of a receipt. */
export const PICTURES = {
  router: [...HARDWARE, EVIDENCE, ...BINDING, NONCE, ...RELEASE, LOGGED],
  receipt: [
    ...EXCHANGE,
    ...HARDWARE,
    { ...EVIDENCE, restsOn: ['receipt'] },
    ...BINDING,
    // The receipt itself contains the bundle; the published one only adds later revocations.
    ...RELEASE.map((box) =>
      box.id === 'bundle' ? { ...box, restsOn: ['evidence'], documents: [] } : box,
    ),
    NEWEST,
  ],
} as const satisfies Readonly<Record<string, readonly BoxDefinition[]>>

export type PictureKind = keyof typeof PICTURES
