import type { Handler } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import { readParameter, type ParameterForm } from '../http/query.ts'
import { attestationUnavailable, json, jsonText } from '../http/reply.ts'
import { sourceOf } from '../http/source.ts'
import { LinkUnavailable } from '../link/link.ts'
import { utf8 } from '../../protocol/bytes.ts'
import { NONCE_PARAMETER } from './operation.ts'
import { findEnvelope, listSigningKeys } from '../storage/signing-keys.ts'

const HEX_32 = /^[0-9a-f]{64}$/
const NONCE: ParameterForm<string> = {
  expected: '64 lowercase hex digits',
  read: (text) => (HEX_32.test(text) ? text : undefined),
  schema: NONCE_PARAMETER.schema,
}

const DAY_MS = 86_400_000

/** How long a source that has used up its fresh attestations is refused without asking the daemon, ms. */
const NONCE_REFUSED_MS = 5_000

/** How long a key is published beyond the receipt retention, days. */
const KEY_RETENTION_DAYS = 400

/** GET /attestation: the current envelope, or with `?nonce=` a new one made for that nonce. */
export const getAttestation: Handler = async (request, { link, shared }) => {
  const nonce = readParameter(new URL(request.url).searchParams, 'nonce', NONCE)
  const source = sourceOf(request)
  if (nonce !== undefined) shared.nonceRefusals.check(source)
  // Making an envelope may take a minute; this call detects an unresponsive daemon sooner.
  await link.state()
  const answer = await link.attestation(nonce === undefined ? undefined : { nonce, source })
  if (answer.ok) return jsonText(utf8(answer.envelope))
  if (answer.reason === 'rate_limited') {
    shared.nonceRefusals.remember(source, NONCE_REFUSED_MS, tooManyNonces)
    throw tooManyNonces()
  }
  return attestationUnavailable()
}

/**
 * The window of the daemon's budget of fresh attestations (src/enclave/envelope/envelope-cache.ts), s: after it, the whole
 * budget is available again.
 */
const NONCE_WINDOW_SECONDS = 60

function tooManyNonces(): ApiError {
  return new ApiError('rate_limit_exceeded', 'Too many attestations were asked for.', {
    retryAfter: NONCE_WINDOW_SECONDS,
  })
}

/** GET /attestation/{sha256}: an envelope that any instance has served before, by the SHA-256 of its bytes. */
export const getStoredEnvelope: Handler = async (_request, { storage }, { sha256 = '' }) => {
  const envelope = HEX_32.test(sha256) ? await findEnvelope(storage.directory(), sha256) : undefined
  if (envelope === undefined) throw new ApiError('not_found', 'There is no such envelope.')
  return jsonText(utf8(envelope), { 'cache-control': 'public, max-age=86400, immutable' })
}

/** GET /.well-known/trust.json: the trust bundle signed by the release root. */
export const getTrustBundle: Handler = async (_request, { link }) =>
  jsonText(utf8(await link.trustBundle()))

/**
 * GET /.well-known/jwks.json: every key that may have signed a receipt still within retention, and the current key even
 * before it has signed anything. When the daemon is unreachable, only the stored keys are served.
 */
export const getJwks: Handler = async (_request, { storage, signingKeys, config, now }) => {
  const days = config.service.receipt_retention_days + KEY_RETENTION_DAYS
  await signingKeys.rememberLive().catch(ignoreLinkUnavailable)
  const rows = await listSigningKeys(storage.directory(), now() - days * DAY_MS)
  const keys = new Map(rows.map(({ kid, jwkJson }) => [kid, JSON.parse(jwkJson) as unknown]))
  return json({ keys: [...keys.values()] }, { 'cache-control': 'public, max-age=60' })
}

function ignoreLinkUnavailable(error: unknown): void {
  if (!(error instanceof LinkUnavailable)) throw error
}
