import * as z from 'zod'
import { EFFORTS } from './effort.ts'
import { DEFAULT_FORWARD } from './forwarded-members.ts'
import { es256JwkSchema } from './jwk.ts'
import { providerPolicySchema } from './provider-policy.ts'
import { telemetrySchema } from './telemetry-config.ts'
import { webhooksSchema } from './webhook-config.ts'

/**
 * The router's configuration file (docs/configuration.md). Unknown keys are errors, so that a typing error never
 * silently weakens a setting. Rules that span several members are in `config-rules.ts`.
 */

const name = z.string().regex(/^[A-Za-z0-9._-]+$/, 'only letters, digits, ".", "_" and "-"')
const milliseconds = z.int().min(1).max(86_400_000)
const price = z.number().min(0).max(1_000_000)
const jsonObject = z.record(z.string(), z.json())

/** The modes of the program: `npm run serve` runs in production mode, local stacks in local mode. */
export const MODES = ['production', 'local'] as const

export const ROUTE_TYPES = ['chat', 'transcription', 'embedding'] as const
export const BILLING_UNITS = ['audio_minute', 'audio_second', 'request'] as const

/** Prices of a route: per million tokens, or per unit of `billing_unit`, in major units of `currency`. */
export const pricingSchema = z.strictObject({
  currency: z.enum(['eur', 'usd']),
  input_per_mtok: price.optional(),
  output_per_mtok: price.optional(),
  cache_input_per_mtok: price.optional(),
  cache_read_input_per_mtok: price.optional(),
  cache_write_input_per_mtok: price.optional(),
  billing_unit: z.enum(BILLING_UNITS).optional(),
  unit_amount: price.optional(),
})

const timeoutsSchema = z.strictObject({
  connect_ms: milliseconds.default(5_000),
  headers_ms: milliseconds.default(60_000),
  first_delta_ms: milliseconds.default(60_000),
  idle_ms: milliseconds.default(60_000),
  stream_headers_after_ms: milliseconds.default(5_000),
  keep_alive_ms: milliseconds.default(2_000),
  stream_open_ms: milliseconds.default(180_000),
  stream_ms: milliseconds.default(3_600_000),
  transcription_ms: milliseconds.default(600_000),
  sync_attempt_ms: milliseconds.optional(),
})

const breakerSchema = z.strictObject({
  errors: z.int().min(1).max(1000).default(5),
  window_ms: milliseconds.default(30_000),
  cooldown_ms: milliseconds.default(15_000),
})

/** Answers kept for requests that are repeated under the same `Idempotency-Key`. */
const idempotencySchema = z.strictObject({
  lifetime_minutes: z.int().min(1).max(1440).default(30),
  /** Maximum for one customer; beyond it the oldest answers are removed. */
  customer_mib: z.int().min(1).max(4096).default(16),
  /** Maximum for all customers; beyond it no further answers are kept. */
  total_mib: z.int().min(1).max(65_536).default(256),
})

const tlsSchema = z.strictObject({
  domains: z.array(z.string()).min(1).optional(),
  acme_directory: z.url().optional(),
  acme_email: z.email().optional(),
  chain_file: z.string().optional(),
})

/** Only the members of a public key: a private key in a configuration file would be disclosed to every reader. */
const { d: _private, ...publicMembers } = es256JwkSchema.shape
const publicKeySchema = z.strictObject(publicMembers)

const unsealSchema = z.strictObject({
  /** Public key (JWK, P-256) of the operator, whose documents supply this router's secrets. */
  operator_key: publicKeySchema,
})

const releaseSchema = z.strictObject({
  /** The public JWK itself, or the path of a file with it. */
  root_key: z.union([z.string(), publicKeySchema]),
  bundle: z.string(),
  manifest: z.string(),
})

const CERTIFICATES =
  /^\s*(?:-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+$/

export const serviceSchema = z.strictObject({
  name,
  trust_bundle_url: z.url().optional(),
  usd_eur: z.number().positive().max(1000).optional(),
  auto: z.array(z.string()).min(1).optional(),
  selection: z.enum(['order', 'price', 'latency', 'strength']).default('order'),
  receipt_retention_days: z.int().min(1).max(3650).default(14),
  timeouts: timeoutsSchema.prefault({}),
  max_attempts: z.int().min(1).max(50).default(6),
  breaker: breakerSchema.prefault({}),
  idempotency: idempotencySchema.prefault({}),
  mode: z.enum(MODES).default('production'),
  allow_unattested: z.array(name).default([]),
  /** Providers whose evidence pins no operating system, but that production mode accepts. */
  allow_unpinned_os: z.array(name).default([]),
  allow_simulated: z.boolean().default(false),
  /** Worker processes on one host, where the command line gives no number; a change takes effect at a restart. */
  workers: z.int().min(1).max(64).default(1),
  /**
   * Threads of the daemon that carry the workers' calls and sign receipts; by default one for each of several workers.
   */
  carriers: z.int().min(1).max(64).optional(),
  /** The embedded ledger lives on the encrypted data disk of the guest. */
  data_disk: z.boolean().default(false),
  /**
   * Certificates (PEM) of the only authorities trusted for the PostgreSQL server's certificate; the server must then
   * use TLS.
   */
  database_ca: z
    .string()
    .regex(CERTIFICATES, 'give certificates in PEM form, and nothing else')
    .optional(),
  cors_origins: z.array(z.string()).default([]),
  tls: tlsSchema.optional(),
  release: releaseSchema.optional(),
  unseal: unsealSchema.optional(),
  webhooks: webhooksSchema.optional(),
  telemetry: telemetrySchema.optional(),
})

export const providerSchema = z.strictObject({
  base_url: z.url({ protocol: /^https?$/ }),
  api_key_env: z.string().min(1).optional(),
  attestation: providerPolicySchema,
})

const reasoningSchema = z.strictObject({
  default_effort: z.enum(EFFORTS),
  history_field: name.optional(),
  efforts: z.partialRecord(z.enum(EFFORTS), jsonObject),
})

const promptCachingSchema = z.strictObject({
  supported: z.boolean(),
  verified: z.boolean().optional(),
  default_enabled: z.boolean().optional(),
  billing_mode: z.string().optional(),
})

/** The capabilities of an embedding route. */
const embeddingSchema = z.strictObject({
  /** Whether callers may choose the length of the vectors. */
  dimensions: z.boolean().default(false),
  /** Maximum number of inputs in one request. */
  max_inputs: z.int().min(1).max(2048).default(2048),
})

const audioSchema = z.strictObject({
  max_bytes: z.int().min(1).optional(),
  mime_types: z.array(z.string()).min(1).optional(),
})

/**
 * The most tokens that a provider can count in a request's input: reserved before it is sent, and the maximum that is
 * billed. Tokenizers that fall back to bytes produce at most one token per byte.
 */
const inputBoundSchema = z.strictObject({
  tokens_per_byte: z.number().positive().max(4).default(1),
  /** Tokens that the chat template adds. */
  base_tokens: z.int().min(0).max(1_000_000).default(1024),
  /** Tokens for each part of that kind; the bytes of an inline image or video are not counted in addition. */
  image_tokens: z.int().min(0).max(10_000_000).default(16_384),
  audio_tokens: z.int().min(0).max(10_000_000).default(32_768),
  video_tokens: z.int().min(0).max(10_000_000).default(131_072),
  file_tokens: z.int().min(0).max(10_000_000).default(32_768),
})

export const routeSchema = z.strictObject({
  model_key: name,
  provider: name,
  region: name.optional(),
  upstream_model: z.string().min(1),
  type: z.enum(ROUTE_TYPES),
  precision: z.string().optional(),
  pricing: pricingSchema.optional(),
  prompt_caching: promptCachingSchema.optional(),
  reasoning: reasoningSchema.optional(),
  ocr: z.boolean().default(false),
  max_output_tokens: z.int().min(1).default(32_768),
  input_bound: inputBoundSchema.prefault({}),
  audio: audioSchema.optional(),
  embedding: embeddingSchema.optional(),
  cache_salt_field: name.optional(),
  /** Members of chat requests that are forwarded in addition to those that every provider receives. */
  forward: z
    .array(name)
    .max(64)
    .default([...DEFAULT_FORWARD]),
})

export const planSchema = z.strictObject({
  discount_pct: z.int().min(0).max(100).default(0),
  requests_per_minute: z.int().min(1).optional(),
  concurrent_requests: z.int().min(1).optional(),
})

export const configSchema = z.strictObject({
  $schema: z.string().optional(),
  service: serviceSchema,
  providers: z.record(name, providerSchema),
  routes: z.array(routeSchema),
  plans: z.record(name, planSchema).default({}),
})

/** A checked configuration with every default filled in. */
export type RouterConfig = z.output<typeof configSchema>
export type ServiceConfig = RouterConfig['service']
export type ProviderConfig = RouterConfig['providers'][string]
export type RouteConfig = RouterConfig['routes'][number]
export type PlanConfig = RouterConfig['plans'][string]
export type Pricing = z.output<typeof pricingSchema>
export type Mode = (typeof MODES)[number]
export type RouteType = (typeof ROUTE_TYPES)[number]
export type BillingUnit = 'token' | (typeof BILLING_UNITS)[number]
