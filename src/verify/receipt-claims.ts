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
import { CLOCK_SKEW_MS, milliseconds } from './clock.ts'

/** What the caller knows of the exchange; what is left away is not compared. Digests are lowercase hex SHA-256. */
export interface ExpectedExchange {
  readonly id?: string | undefined
  /** The front door that was called, by its path. */
  readonly endpoint?: string | undefined
  readonly requestedRoute?: string | undefined
  readonly routedModel?: string | undefined
  readonly clientRequestSha256?: string | undefined
  readonly clientResponseSha256?: string | undefined
  readonly providerRequestSha256?: string | undefined
  readonly providerResponseSha256?: string | undefined
  /** What was required of the provider: the receipt must say the same or more. */
  readonly constraints?: Constraints | undefined
}

/** Every expectation becomes one check; the claim that it is about carries the name. */
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

/** Front doors whose answers are no text that a model generates, so that no completion tokens can be claimed. */
const WITHOUT_COMPLETION: readonly string[] = ['/v1/embeddings'] satisfies ReceiptEndpoint[]

/**
 * The front door is one that receipts are issued for, the expected one, and fits the other claims. Without it nobody
 * knows the format of the bytes that the client's digests are over. Receipts of earlier versions name none, which only
 * an expectation makes a failure.
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
    !KNOWN_ENDPOINTS.includes(endpoint) && `no front door is known as ${endpoint}`,
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
 * What was required of the provider, by the receipt itself and by whoever verifies it, against what the receipt says of
 * the provider. No check where nobody required anything.
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

/** The provider by the receipt's own account; where it contradicts itself, or says nothing, nothing is proven. */
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

/** The key that the receipt says signed it is the one that did. */
export function checkKeyContext(claims: ReceiptClaims, kid: string | undefined): Check {
  const { kid: stated, verification_mode: mode } = claims.receipt_signature
  const fault = stated === kid ? undefined : `it names ${stated}, but ${kid} signed it`
  return judge('receipt_key_context', fault, `${stated}, ${mode}`)
}

/** The key exists from its first evidence on, and no longer than its JWK says where that says anything. */
export function checkTime(
  claims: ReceiptClaims,
  { nbf, exp }: Es256Jwk,
  envelope: Envelope | undefined,
  now: number,
): Check {
  const issued = claims.iat * 1000
  const first = envelope && milliseconds(envelope.issued_at)
  const fault = firstFault(
    issued > now + CLOCK_SKEW_MS && 'issued in the future',
    first !== undefined &&
      issued < first - CLOCK_SKEW_MS &&
      'issued before the evidence of its key',
    typeof nbf === 'number' && claims.iat < nbf && 'issued before its key was in use',
    typeof exp === 'number' && claims.iat > exp && 'issued after its key was out of use',
  )
  return judge('receipt_time', fault, new Date(issued).toISOString())
}
