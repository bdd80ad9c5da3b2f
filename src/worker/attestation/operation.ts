import { z } from 'zod'
import { envelopeSchema } from '../../protocol/envelope.ts'
import type { Operation } from '../http/operation.ts'

const envelope = { name: 'AttestationEnvelope', schema: envelopeSchema }
const tag = 'Attestation'

export const NONCE_PARAMETER = {
  schema: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  description: 'Has a report captured for this value.',
}

export const ATTESTATION_OPERATION: Operation = {
  summary: 'Show the evidence of the router',
  tag,
  query: { nonce: NONCE_PARAMETER },
  answer: { 'application/json': envelope },
  errors: ['invalid_parameter', 'rate_limit_exceeded', 'attestation_unavailable'],
}

export const STORED_ENVELOPE_OPERATION: Operation = {
  summary: 'Show evidence that some instance served before',
  tag,
  path: { sha256: 'SHA-256 of its bytes, lowercase hex.' },
  answer: { 'application/json': envelope },
  errors: ['not_found'],
}

export const JWKS_OPERATION: Operation = {
  summary: 'List the keys that receipts are signed with',
  tag,
  answer: {
    'application/json': {
      name: 'KeySet',
      schema: z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) }),
    },
  },
  errors: [],
}

export const TRUST_OPERATION: Operation = {
  summary: 'Show the trust bundle that the release root has signed',
  tag,
  answer: {
    'application/json': {
      name: 'TrustBundle',
      schema: z.looseObject({ trust_bundle_jws: z.string() }),
    },
  },
  errors: [],
}

export const HEALTH_OPERATION: Operation = {
  summary: 'Tell whether the router is ready',
  tag: 'Operation',
  answer: {
    'application/json': { name: 'Health', schema: z.object({ status: z.literal('ok') }) },
  },
  errors: [],
}

export const UNSEAL_OPERATION: Operation = {
  summary: 'Give the router new secrets, by a document that its operator signed',
  tag: 'Operation',
  body: {
    mediaType: 'application/jose',
    content: { name: 'UnsealDocument', schema: z.string().meta({ description: 'A compact JWS.' }) },
  },
  answer: {
    'application/json': {
      name: 'Unsealed',
      schema: z.object({ outcome: z.literal('accepted') }),
    },
  },
  errors: ['unseal_refused', 'request_too_large', 'invalid_request_error'],
}
