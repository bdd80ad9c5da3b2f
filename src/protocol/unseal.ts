import * as z from 'zod'
import { hex32 } from './hex-schema.ts'

/**
 * The document that gives a sealed router its secrets (docs/unsealing.md): a compact JWS, signed with the operator's
 * key, whose public half is in the configuration. It is sent over a TLS connection that ends in the attested router.
 */

export const UNSEAL_SCHEMA = 'service.unseal/v1'

/** `typ` of the JWS header; prevents a document of another kind from being accepted as this one. */
export const UNSEAL_TYP = 'unseal+jwt'

/** POST with the JWS as the body. */
export const UNSEAL_PATH = '/unseal'

/** Longest validity of a document; long enough to deliver it. */
export const MAX_VALIDITY_SECONDS = 600

/** Enough for hundreds of keys; unauthenticated clients may send as much. */
export const MAX_UNSEAL_BYTES = 65_536

export const unsealDocumentSchema = z.strictObject({
  schema: z.literal(UNSEAL_SCHEMA),
  /** Unix seconds. */
  issued_at: z.int(),
  expires_at: z.int(),
  /** The nonce of the attestation that the operator has just requested. */
  nonce: hex32,
  /** SHA-256 of the router's TLS key, as bound by that attestation. */
  tls_spki_sha256: hex32,
  /** SHA-256 of the configuration, as bound by that attestation. */
  configuration_sha256: hex32,
  /** The secrets by the name of their variable. */
  secrets: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/), z.string().min(1)),
  /** The minimum position of the ledger: the last one that the operator has seen. */
  ledger_position: z.int().min(0).optional(),
})

/** Why a document is refused. */
export const UNSEAL_REFUSALS = {
  not_configured: 'the configuration names no operator key, so no document is taken',
  malformed: 'this is not an unseal document',
  bad_signature: 'the document is not signed by the operator key of the configuration',
  not_yet_valid: 'the document is from the future, or the clock of this router is behind',
  expired: 'the document has expired',
  validity_too_long: `the document is valid for more than ${MAX_VALIDITY_SECONDS} seconds`,
  wrong_router: 'the document is for another router: its TLS key is not the one in use',
  wrong_configuration: 'the document is for another configuration than the one in force',
  unknown_nonce: 'this router attested no such nonce lately, or the document was used already',
  secrets_refused: 'the secrets of the document cannot be put into force',
} as const

export type UnsealRefusal = keyof typeof UNSEAL_REFUSALS

const refusalNames = Object.keys(UNSEAL_REFUSALS).filter(isRefusal)

function isRefusal(name: string): name is UnsealRefusal {
  return Object.hasOwn(UNSEAL_REFUSALS, name)
}

/** The answer to a document. */
export const unsealAnswerSchema = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('accepted') }),
  z.object({
    outcome: z.literal('refused'),
    reason: z.enum(refusalNames),
    message: z.string(),
  }),
])

export type UnsealDocument = z.output<typeof unsealDocumentSchema>
export type UnsealAnswer = z.output<typeof unsealAnswerSchema>
