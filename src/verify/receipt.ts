import { parseCompactJws } from '../protocol/compact-jws.ts'
import { REPORT_DATA_V2 } from '../protocol/envelope.ts'
import type { Es256Jwk } from '../protocol/jwk.ts'
import { readDocument } from '../protocol/read-document.ts'
import { receiptClaimsSchema, type ReceiptClaims } from '../protocol/receipt.ts'
import { parseStrictJson } from '../protocol/strict-json.ts'
import { firstFault, judge, verdict, type Check, type Verdict } from './check.ts'
import { CLOCK_SKEW_MS, milliseconds } from './clock.ts'
import { headerFault, checkJws } from './jws.ts'
import { findSigningKey } from './key-set.ts'
import { checkHop, type HopOptions, type HopResult } from './receipt-hop.ts'

const DOCUMENT = 'receipt'

/** Routers of earlier versions wrote no `typ`, or the general one. */
const ACCEPTED_TYPES = ['receipt+jwt', 'JWT', undefined] as const

/** What the caller knows of the exchange; what is left away is not compared. Digests are lowercase hex SHA-256. */
export interface ExpectedExchange {
  readonly id?: string | undefined
  readonly requestedRoute?: string | undefined
  readonly routedModel?: string | undefined
  readonly clientRequestSha256?: string | undefined
  readonly clientResponseSha256?: string | undefined
  readonly providerRequestSha256?: string | undefined
  readonly providerResponseSha256?: string | undefined
}

export interface ReceiptOptions extends Omit<HopOptions, 'rootJwk'> {
  /** The router's published key set, as parsed JSON. */
  readonly jwks: unknown
  readonly expected?: ExpectedExchange
  readonly routerRoot?: Es256Jwk | undefined
  readonly providerRoot?: Es256Jwk | undefined
  /** Fails a receipt whose provider hop was not attested. */
  readonly requireProvider?: boolean
}

export interface ReceiptResult extends Verdict {
  /** What could not be judged, and why. */
  readonly notes: readonly string[]
  /** Only where the signature is verified. */
  readonly claims?: ReceiptClaims
}

/**
 * Verifies a receipt (interface: "Verification"): key -> signature -> claims -> both hops again from their evidence, as
 * of the moment it was issued. Nothing of it is read before its signature is verified. Throws `MalformedEvidence`.
 */
export async function verifyReceipt(text: string, options: ReceiptOptions): Promise<ReceiptResult> {
  const jws = parseCompactJws(text, DOCUMENT)
  const header = headerFault(jws, ACCEPTED_TYPES)
  if (header !== undefined) return failed([judge('receipt_header', header, '')])
  const key = await findSigningKey(options.jwks, jws.header.kid)
  if (typeof key === 'string') return failed([judge('receipt_key_known', key, '')])
  const expectation = { document: 'receipt', typ: ACCEPTED_TYPES, key } as const
  const signature = await checkJws(jws, expectation)
  const known = judge('receipt_key_known', undefined, `${jws.header.kid}`)
  if (!verdict(signature).ok) return failed([known, ...signature])

  const payload = parseStrictJson(jws.payload, DOCUMENT)
  const claims = readDocument(receiptClaimsSchema, payload, DOCUMENT)
  const router = await checkRouter(claims, options)
  const provider = await checkProvider(claims, options)
  const checks = [
    known,
    ...signature,
    ...checkClaims(claims, options.expected ?? {}),
    checkKeyContext(claims, jws.header.kid),
    checkTime(claims, key, router, options.now),
    ...router.checks,
    ...checkReceiptKey(claims, router),
    ...checkConfiguration(claims, router),
    ...provider.checks,
  ]
  return { ...verdict(checks), notes: [...router.notes, ...provider.notes], claims }
}

function failed(checks: readonly Check[]): ReceiptResult {
  return { ...verdict(checks), notes: ['not judged further: nobody known signed this'] }
}

/** Every expectation becomes one check; the claim that it is about carries the name. */
function checkClaims(claims: ReceiptClaims, expected: ExpectedExchange): Check[] {
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

function checkKeyContext(claims: ReceiptClaims, kid: string | undefined): Check {
  const { kid: stated, verification_mode: mode } = claims.receipt_signature
  const fault = stated === kid ? undefined : `it names ${stated}, but ${kid} signed it`
  return judge('receipt_key_context', fault, `${stated}, ${mode}`)
}

/** The key exists from its first evidence on, and no longer than its JWK says where that says anything. */
function checkTime(claims: ReceiptClaims, key: Es256Jwk, router: HopResult, now: number): Check {
  const issued = claims.iat * 1000
  const { nbf, exp } = key
  const first = router.envelope && milliseconds(router.envelope.issued_at)
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

async function checkRouter(claims: ReceiptClaims, options: ReceiptOptions): Promise<HopResult> {
  return checkHop('router_attestation', claims.router_attestation, {
    ...options,
    now: claims.iat * 1000,
    rootJwk: options.routerRoot,
  })
}

/** The router's report must vouch for the very key that signed; evidence that binds no key cannot. */
function checkReceiptKey(claims: ReceiptClaims, { envelope }: HopResult): Check[] {
  if (envelope === undefined) return []
  const bound = envelope.report_data_binding?.receipt_key_thumbprint
  const { kid } = claims.receipt_signature
  const fault = bound === kid ? undefined : `the evidence vouches for ${bound ?? 'no receipt key'}`
  return [judge('receipt_key', fault, kid)]
}

/** Receipts and evidence of earlier versions name no configuration; where one does, the other must name the same. */
function checkConfiguration(claims: ReceiptClaims, { envelope }: HopResult): Check[] {
  if (envelope === undefined) return []
  const binding = envelope.report_data_binding
  const bound = binding?.label === REPORT_DATA_V2 ? binding.configuration_sha256 : undefined
  const { configuration_sha256: claimed } = claims
  if (bound === undefined && claimed === undefined) return []
  const fault =
    bound === claimed ? undefined : `the evidence vouches for ${bound ?? 'no configuration'}`
  return [judge('configuration', fault, claimed ?? 'none')]
}

async function checkProvider(claims: ReceiptClaims, options: ReceiptOptions): Promise<HopResult> {
  const block = claims.inference_attestation ?? claims.provider_attestation
  const name = claims.inference_attestation ? 'inference_attestation' : 'provider_attestation'
  if (block?.verified !== true) {
    const fault = `the provider was not attested (${block?.verification_mode ?? 'no block'})`
    const required = options.requireProvider === true
    return {
      checks: required ? [judge('provider_attested', fault, '')] : [],
      notes: [`${name}: ${fault}`],
    }
  }
  const hop = await checkHop(name, block, {
    ...options,
    now: claims.iat * 1000,
    rootJwk: options.providerRoot,
  })
  const stands = block.attestation_strength
  const simulated = stands === 'simulated' && (options.simulated ?? 'refuse') === 'refuse'
  const fault = simulated ? 'only a simulated platform stands behind it' : undefined
  return { ...hop, checks: [judge('provider_attested', fault, stands), ...hop.checks] }
}
