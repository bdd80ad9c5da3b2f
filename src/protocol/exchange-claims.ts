import type { Constraints } from './constraints.ts'
import { DIGEST_VERSION } from './digest.ts'
import type { ExchangeClaims, ReceiptEndpoint } from './receipt.ts'

/** Digests of the exact bytes for the receipt, each a SHA-256 in lowercase hex. */
export interface ExchangeDigests {
  readonly providerRequest: string
  readonly providerResponse: string
  readonly clientRequest: string
  readonly clientResponse: string
}

/** The facts of one exchange that its receipt states. */
export interface ClaimedExchange {
  readonly receiptId: string
  /** Ms. */
  readonly issuedAt: number
  readonly endpoint: ReceiptEndpoint
  readonly requestedRoute: string
  /** The concrete route that served. */
  readonly routedModel: string
  readonly failover: boolean
  /** The constraints that the provider had to meet. */
  readonly constraints: Constraints | undefined
  /** 0 where tokens are not billed. */
  readonly promptTokens: number
  readonly completionTokens: number
  readonly digests: ExchangeDigests
  /** Whether the digest of the provider's answer is over the decompressed bytes. */
  readonly decoded: boolean
}

/** The claims of an exchange in its receipt ("Receipts" in docs/api.md). */
export function exchangeClaims(exchange: ClaimedExchange): ExchangeClaims {
  const { digests, constraints } = exchange
  return {
    jti: exchange.receiptId,
    iat: Math.floor(exchange.issuedAt / 1000),
    endpoint: exchange.endpoint,
    requested_route: exchange.requestedRoute,
    routed_model: exchange.routedModel,
    prompt_tokens: exchange.promptTokens,
    completion_tokens: exchange.completionTokens,
    request_digest: digests.providerRequest,
    response_digest: digests.providerResponse,
    ...(exchange.decoded && { response_digest_over: 'decoded' as const }),
    digest_version: DIGEST_VERSION,
    failover: exchange.failover,
    client_request_digest: digests.clientRequest,
    client_response_digest: digests.clientResponse,
    ...(constraints && { constraints }),
  }
}
