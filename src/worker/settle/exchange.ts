import type { Constraints } from '../../protocol/constraints.ts'
import { exchangeClaims, type ExchangeDigests } from '../../protocol/exchange-claims.ts'
import type { ExchangeClaims, ReceiptEndpoint } from '../../protocol/receipt.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import type { Route } from '../provider/route.ts'
import type { Admission } from './admit.ts'

/** The record of a served attempt, from which it is settled. */
export interface Exchange {
  /** Also the usage row's id and the idempotency key of its settlement. */
  readonly requestId: string
  readonly admission: Admission
  readonly endpoint: ReceiptEndpoint
  readonly modality: 'chat' | 'transcription' | 'embedding'
  /** The requested primary route in canonical form. */
  readonly requestedRoute: string
  /** The concrete route that served. */
  readonly route: Route
  readonly failover: boolean
  /** What the client required of the provider; the receipt repeats it. */
  readonly constraints: Constraints | undefined
  readonly usage: TokenUsage
  /** Whether the provider reported more usage than the request can have caused. */
  readonly usageCapped: boolean
  /** Seconds of audio to bill; undefined for chat. */
  readonly billedSeconds: number | undefined
  /** Seconds as the provider reported them; null where it reported none. */
  readonly reportedSeconds: number | null
  /** The encrypted answer for repeats of a request with a claim; absent or null: none is kept. */
  readonly answer?: string | null
}

/** What binds an exchange to the enclave that served it. */
export interface ExchangeProof {
  readonly digests: ExchangeDigests
  readonly evidenceSha256: string | null
  /** Whether the digest of the provider's answer is over the decompressed bytes. */
  readonly decoded: boolean
  /** The provider's own id of the finished answer, where it gave one. */
  readonly providerResponseId?: string | undefined
}

/** Whether a route bills by tokens. */
export function billsTokens({ config }: Route): boolean {
  return config.pricing?.billing_unit === undefined
}

/** Rows and receipts hold token counts only where tokens are billed. */
export function billedTokens({ route, usage }: Exchange) {
  const billed = billsTokens(route)
  return {
    promptTokens: billed ? usage.promptTokens : 0,
    completionTokens: billed ? usage.completionTokens : 0,
  }
}

/** The exchange's claims in its receipt. `id` is the receipt's, `now` in milliseconds. */
export function claimsOf(
  exchange: Exchange,
  { digests, decoded }: ExchangeProof,
  id: string,
  now: number,
): ExchangeClaims {
  const { endpoint, requestedRoute, route, failover, constraints } = exchange
  return exchangeClaims({
    receiptId: id,
    issuedAt: now,
    endpoint,
    requestedRoute,
    routedModel: route.id,
    failover,
    constraints,
    ...billedTokens(exchange),
    digests,
    decoded,
  })
}
