import { CHUNKS_PATH, MESSAGES_PATH, WAITING_PATH } from './link-messages.ts'
import * as z from 'zod'
import { hex32 } from './hex-schema.ts'
import { configSchema } from './config.ts'
import { exchangeClaimsSchema } from './receipt.ts'

/**
 * The link between worker and enclave daemon: JSON over HTTP/1.1 inside TLS 1.3, pinned on both ends.
 * Every path below is served by the daemon; a failure is `{"error": {"code", "message"}}` with a 4xx or 5xx.
 */
export const LINK_PATHS = {
  /** GET: `LinkState`. Cheap; the worker requests it before it starts work and caches the answer briefly. */
  state: '/v1/state',
  /** GET: `LinkConfig`, the configuration of the current generation with the secrets it names. */
  config: '/v1/config',
  /** POST `SignRequest`: `SignResponse`. All or nothing. */
  sign: '/v1/sign',
  /** GET `?nonce=<64 hex>&source=<opaque id of the requester>`: the attestation envelope as served to clients. */
  attestation: '/v1/attestation',
  /** GET: `{"trust_bundle_jws"}` as served to clients. */
  trust: '/v1/trust',
  /**
   * GET: `HpkeAnswer`, the key that bodies may be encrypted to. POST `DecapsulateRequest`: `DecapsulateAnswer`, or 409
   * `replayed`, 429 `rate_limited` for an owner that has used its share of the key's uses, 507 `used_up`.
   */
  hpke: '/v1/hpke',
  /** POST, an unseal document as text: `UnsealAnswer`. GET: how often each refusal was given, under `refused`. */
  unseal: '/v1/unseal',
  /** POST `TelemetryReport` (telemetry.ts) of one worker: `TelemetryAnswer`, that of the host's other workers. */
  telemetry: '/v1/telemetry',
  /** GET: `ProviderProof[]` under `providers`. */
  providers: '/v1/providers',
  /** GET `/v1/evidence/<sha256>`: the raw evidence bytes a receipt refers to by digest. */
  evidence: '/v1/evidence',
  /**
   * Any method `/v1/egress/<provider>/<path below its base_url>`: a call to a provider, streamed in both directions.
   */
  egress: '/v1/egress',
  /**
   * DELETE `/v1/streams/<stream>`: ends a stream whose chunks the daemon writes, if it is still open, and answers with
   * its `StreamRecord` (stream-record.ts), once.
   */
  streams: '/v1/streams',
  /** GET with an upgrade to WebSocket: small calls as messages (link-messages.ts). */
  messages: MESSAGES_PATH,
  /** GET `/v1/chunks/<id>` with an upgrade to WebSocket: chunks of streams, which the daemon sends (link-messages.ts). */
  chunks: CHUNKS_PATH,
  /**
   * GET `/v1/waiting/<id>`: the answer to an egress call that came as a message, where it is not small; streamed, once.
   */
  waiting: WAITING_PATH,
} as const

/** Names the evidence that the connection of an egress answer was pinned to: its SHA-256 in hex. */
export const EGRESS_EVIDENCE_HEADER = 'x-cmr-evidence-sha256'

/**
 * On an egress call: the caller's constraints in compact form, to be checked on the connection that carries the
 * request.
 */
export const EGRESS_REQUIRE_HEADER = 'x-cmr-require'

/**
 * On an egress call to a provider without attestation: its `base_url` as the worker knows it (`bareBaseUrl`). Only with
 * this header does the daemon call a provider without a proof.
 */
export const EGRESS_UNATTESTED_HEADER = 'x-cmr-unattested'

/**
 * On an egress call: asks the daemon to write the chunks of the client's stream itself (`StreamSpec`). On its answer:
 * says that it does (`CHUNKS_WRITTEN`). Otherwise the body is the provider's.
 */
export const EGRESS_CHUNKS_HEADER = 'x-cmr-chunks'

/** Where the daemon writes the chunks: into the answer's body, or to the connection that the `StreamSpec` names. */
export const CHUNKS_WRITTEN = { here: 'written', there: 'sent' } as const

/** Set on an egress answer that is the daemon's own refusal rather than the provider's; contains its code. */
export const EGRESS_ERROR_HEADER = 'x-cmr-egress-error'

/** Longer than any provider's ids. A longer id, or one that is not UTF-8 text, counts as absent. */
export const MAX_RESPONSE_ID_CHARS = 256

const publicJwkSchema = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  kid: z.string(),
  alg: z.literal('ES256'),
  use: z.literal('sig'),
})

export const linkStateSchema = z.object({
  /** The id of the daemon's thread that answers; a new one after each start. */
  thread: z.uuid(),
  /** Increases by one with every configuration that the daemon accepts, from 1 at each start. */
  generation: z.int().min(1),
  /** The id of the receipt key, which is new after each start. */
  kid: z.string(),
  jwk: publicJwkSchema,
  /** SHA-256 of the exact bytes of `envelope`; null while no envelope could be captured. */
  envelope_sha256: z.string().nullable(),
})

export const linkConfigSchema = z.object({
  generation: z.int().min(1),
  config: configSchema,
  /** SHA-256 of the configuration file's bytes, lowercase hex. */
  configuration_sha256: hex32,
  secrets: z.object({
    admin_token: z.string().min(1),
    /** Provider name to API key, for providers that have one. */
    provider_api_keys: z.record(z.string(), z.string()),
    /** Signing secrets by webhook endpoint. */
    webhook_secrets: z.record(z.string(), z.string()).default({}),
  }),
})

export const signRequestSchema = z.object({
  receipts: z
    .array(
      z.object({
        claims: exchangeClaimsSchema,
        provider: z.string(),
        /** `LinkConfig.configuration_sha256` of the configuration that the exchange began under. */
        configuration_sha256: hex32,
        /** From `EGRESS_EVIDENCE_HEADER`; null for a provider that is reached without attestation. */
        evidence_sha256: z.string().nullable(),
        /** The provider's own id of the finished completion, under which it may have signed it. */
        provider_response_id: z.string().max(MAX_RESPONSE_ID_CHARS).optional(),
        /** The provider's name for the model; some providers sign it. */
        upstream_model: z.string().optional(),
      }),
    )
    .min(1),
  /** SHA-256 of the head of an earlier answer, which the worker still has. */
  known_head: hex32.optional(),
})

/**
 * The common beginning of all receipts with the same two hops: nine tenths of each. It says nothing about a single
 * exchange.
 */
export const receiptHeadSchema = z.object({
  /** Of `text`, lowercase hex. */
  sha256: hex32,
  text: z.string(),
  /** SHA-256 of each piece of evidence that its attestations name by digest. */
  evidence_refs: z.array(z.string()),
})

/** Receipts in two parts. The answer has each head once, and `known_head` without its text. */
export const signResponseSchema = z.object({
  kid: z.string(),
  heads: z.array(receiptHeadSchema.partial({ text: true })),
  receipts: z.array(
    z.object({
      /** Index of the head. */
      head: z.int().min(0),
      /** The rest of the compact JWS. */
      tail: z.string(),
      /** SHA-256 of the complete compact JWS, lowercase hex. */
      sha256: hex32,
    }),
  ),
})

export const hpkeAnswerSchema = z.object({
  /** The key configuration as it is served to clients (RFC 9458 section 3), base64. */
  key_config_b64: z.string(),
})

export const decapsulateRequestSchema = z.strictObject({
  /** The encapsulated key of one request, lowercase hex. */
  enc: hex32,
  /**
   * The owner of the request, for sharing the key's uses; the encapsulated key is then never accepted again. Null where
   * only an error is to be encrypted.
   */
  owner: z.string().min(1).max(64).nullable(),
})

export const decapsulateAnswerSchema = z.object({
  /** The shared secret (RFC 9180 section 4.1) under each key in use, newest first, lowercase hex. */
  shared_secrets: z.array(hex32).min(1),
})

export type DecapsulateAnswer = z.output<typeof decapsulateAnswerSchema>
export type PublicJwk = z.output<typeof publicJwkSchema>
export type LinkState = z.output<typeof linkStateSchema>
export type LinkConfig = z.output<typeof linkConfigSchema>
export type SignRequest = z.output<typeof signRequestSchema>
export type SignResponse = z.output<typeof signResponseSchema>
export type ReceiptHead = z.output<typeof receiptHeadSchema>
