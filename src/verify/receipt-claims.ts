import * as z from 'zod'
import {
  formatConstraints,
  isAtLeastAsStrict,
  unmetConstraint,
  type Constraints,
  type ProvenPeer,
} from '../protocol/constraints.ts'
import type { Envelope } from '../protocol/envelope.ts'
import type { Es256Jwk } from '../protocol/jwk.ts'
import { RECEIPT_ENDPOINTS, type ReceiptClaims, type ReceiptEndpoint } from '../protocol/receipt.ts'
import { firstFault, judge, type Check } from './check.ts'
import { PARTIES_DIFFER_MS, milliseconds } from './clock.ts'

/** What the caller knows about the exchange; omitted members are not compared. Digests are lowercase hex SHA-256. */
export interface ExpectedExchange {
  readonly id?: string | undefined
  /** The called endpoint, by its path. */
  readonly endpoint?: string | undefined
  readonly requestedRoute?: string | undefined
  readonly routedModel?: string | undefined
  readonly clientRequestSha256?: string | undefined
  readonly clientResponseSha256?: string | undefined
  readonly providerRequestSha256?: string | undefined
  readonly providerResponseSha256?: string | undefined
  /** The caller's requirements on the provider: the receipt must state the same or stricter ones. */
  readonly constraints?: Constraints | undefined
}

/** Makes one check of every expectation, named for its claim. */
export function checkExchange(claims: ReceiptClaims, expected: ExpectedExchange): Check[] {
  const pairs = [
    ['receipt_id', claims.jti, expected.id],
    ['requested_route', claims.requested_route, expected.requestedRoute],
    ['routed_model', claims.routed_model, expected.routedModel],
    ['client_request_digest', claims.client_request_digest, expected.clientRequestSha256],
    ['client_response_digest', claims.client_response_digest, expected.clientResponseSha256],
    ['request_digest', claims.request_digest, expected.providerRequestSha256],
    ['response_digest', claims.response_digest, expected.providerResponseSha256],
  ] as const
  return pairs.flatMap(([name, claimed = 'nothing', wanted]) => {
    if (wanted === undefined) return []
    const fault = claimed === wanted ? undefined : `the receipt says ${claimed}, not ${wanted}`
    return [judge(name, fault, claimed)]
  })
}

const KNOWN_ENDPOINTS: readonly string[] = RECEIPT_ENDPOINTS

/** Endpoints whose answers are not generated text, so that there are no completion tokens. */
const WITHOUT_COMPLETION: readonly string[] = ['/v1/embeddings'] satisfies ReceiptEndpoint[]

/**
 * Checks the endpoint: it must be one that issues receipts, the expected one, and consistent with the other claims. It
 * determines the format of the bytes that the client's digests cover. Receipts of earlier versions have none, which
 * fails only if one is expected.
 */
export function checkEndpoint(claims: ReceiptClaims, expected: string | undefined): Check[] {
  const { endpoint } = claims
  if (endpoint === undefined && expected === undefined) return []
  return [judge('endpoint', endpointFault(claims, expected), endpoint ?? '')]
}

function endpointFault(
  { endpoint, ...claims }: ReceiptClaims,
  expected: string | undefined,
): string | undefined {
  if (endpoint === undefined) return `the receipt says nothing, not ${expected}`
  const digests = [claims.client_request_digest, claims.client_response_digest]
  return firstFault(
    !KNOWN_ENDPOINTS.includes(endpoint) && `no endpoint is known as ${endpoint}`,
    expected !== undefined &&
      endpoint !== expected &&
      `the receipt says ${endpoint}, not ${expected}`,
    digests.includes(undefined) && `a receipt of ${endpoint} has both digests of the client`,
    WITHOUT_COMPLETION.includes(endpoint) &&
      claims.completion_tokens !== 0 &&
      `${endpoint} generates nothing, but ${claims.completion_tokens} completion tokens are claimed`,
  )
}

/**
 * Checks the requirements on the provider, from the receipt itself and from its verifier, against the receipt's
 * statements on the provider. Makes no check where there are none.
 */
export function checkConstraints(claims: ReceiptClaims, asked: Constraints | undefined): Check[] {
  const { constraints: held } = claims
  if (held === undefined && asked === undefined) return []
  const unmet = held && unmetConstraint(held, recordedPeer(claims))
  const fault = firstFault(
    held === undefined && 'the receipt says that nothing was required',
    held !== undefined &&
      asked !== undefined &&
      !isAtLeastAsStrict(held, asked) &&
      `the receipt says that less was required: ${formatConstraints(held)}`,
    unmet !== undefined && `the provider does not meet \`${unmet}\``,
  )
  return [judge('constraints', fault, held === undefined ? '' : formatConstraints(held))]
}

const referenceSchema = z.object({ sha256: z.string() })

/**
 * The provider according to the receipt's own statements; where they are contradictory or missing, nothing is proven.
 */
function recordedPeer(claims: ReceiptClaims): ProvenPeer {
  const block = claims.inference_attestation ?? claims.provider_attestation
  const summarized = block?.evidence_summary?.['evidence_sha256']
  const referred = referenceSchema.safeParse(block?.evidence_raw).data?.sha256
  const digest = typeof summarized === 'string' ? summarized : referred
  return {
    provider: claims.routed_model.split('/').at(-2) ?? '',
    strength: block?.attestation_strength ?? 'none',
    evidenceSha256: referred === undefined || referred === digest ? (digest ?? null) : null,
  }
}

/** Checks that the key that the receipt names is the one that signed it. */
export function checkKeyContext(claims: ReceiptClaims, kid: string | undefined): Check {
  const { kid: stated, verification_mode: mode } = claims.receipt_signature
  const fault = stated === kid ? undefined : `it names ${stated}, but ${kid} signed it`
  return judge('receipt_key_context', fault, `${stated}, ${mode}`)
}

/** Checks the time of issue: after the key's first evidence, and within the dates in its JWK, if it has any. */
export function checkTime(
  claims: ReceiptClaims,
  { nbf, exp }: Es256Jwk,
  envelope: Envelope | undefined,
  now: number,
): Check {
  const issued = claims.iat * 1000
  const first = envelope && milliseconds(envelope.issued_at)
  const fault = firstFault(
    issued > now + PARTIES_DIFFER_MS && 'issued in the future',
    first !== undefined &&
      issued < first - PARTIES_DIFFER_MS &&
      'issued before the evidence of its key',
    typeof nbf === 'number' && claims.iat < nbf && 'issued before its key was in use',
    typeof exp === 'number' && claims.iat > exp && 'issued after its key was out of use',
  )
  return judge('receipt_time', fault, new Date(issued).toISOString())
}
