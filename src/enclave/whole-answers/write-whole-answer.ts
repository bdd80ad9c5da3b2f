import { hash } from 'node:crypto'
import { exchangeClaims } from '../../protocol/exchange-claims.ts'
import { SMALL_BODY_BYTES } from '../../protocol/link-messages.ts'
import type { ExchangeClaims } from '../../protocol/receipt.ts'
import type { WholeAnswerSpec, WholeAnswerRecord } from '../../protocol/whole-answer.ts'
import { messageBody } from '../../worker/formats/message-body.ts'
import type { AnswerHead } from '../../worker/stream/answer-head.ts'
import { BrokenStream } from '../../worker/stream/broken-stream.ts'
import { chatCompletionBody } from '../../worker/stream/chat-completion.ts'
import { usageAsBilled } from '../../worker/stream/billing-limits.ts'
import type { ProviderAnswer } from '../../worker/stream/provider-answer.ts'
import { readSmallAnswer } from '../../worker/stream/read-small-answer.ts'
import { serviceObject } from '../../worker/stream/service-object.ts'
import type { TokenUsage } from '../../worker/stream/token-usage.ts'
import type { UsageReport } from '../../worker/stream/usage-tally.ts'
import type { WholeAnswerCall } from '../egress/whole-answer-call.ts'
import type { InstantSigner } from '../sign/receipt-signer.ts'

/** A client's answer without its receipt. */
export interface UnsignedWholeAnswer {
  readonly body: Buffer
  readonly record: Omit<WholeAnswerRecord, 'signed'>
  /** Undefined where no receipt is wanted. */
  readonly claims: ExchangeClaims | undefined
}

/**
 * Writes the client's answer from a small one of a provider, with the same modules that a worker uses for other
 * providers.
 * @param at ms
 * @returns undefined where the worker must read the provider's bytes itself: they cannot be passed on, or the written
 *   answer is too large
 */
export function writeWholeAnswer(
  { spec, request }: WholeAnswerCall,
  bytes: Buffer,
  at: number,
): UnsignedWholeAnswer | undefined {
  const answer = readWhole(spec, bytes)
  if (answer === undefined) return undefined
  const usage = usageAsBilled(answer.tally.produced, spec.billing)
  const body = Buffer.from(JSON.stringify(bodyOf(spec, answer, usage, at)))
  // The worker has room only for a small answer without asking for more.
  if (body.length > SMALL_BODY_BYTES) return undefined
  const digests = { request: sha256(request), response: sha256(bytes), client: sha256(body) }
  return {
    body,
    record: {
      counts: answer.tally.counts,
      provider_response_id: answer.providerResponseId ?? null,
      request_sha256: digests.request,
      response_sha256: digests.response,
    },
    claims: claimsOf(spec, digests, usage, at),
  }
}

/** Signs the receipt of such an answer; null where none is wanted, or where the worker must request it itself. */
export function signWholeAnswer(
  { spec, provider, evidenceSha256 }: WholeAnswerCall,
  claims: ExchangeClaims,
  sign: InstantSigner,
): WholeAnswerRecord['signed'] {
  if (spec.receipt === null) return null
  const { configuration_sha256, known_head } = spec.receipt
  const request = { claims, provider, configuration_sha256, evidence_sha256: evidenceSha256 }
  return sign(request, known_head) ?? null
}

function readWhole(spec: WholeAnswerSpec, bytes: Buffer): ProviderAnswer | undefined {
  const options = { id: spec.id, includeReasoning: spec.include_reasoning }
  try {
    return readSmallAnswer(bytes, options)
  } catch (error) {
    if (error instanceof BrokenStream) return undefined
    throw error
  }
}

function bodyOf(
  spec: WholeAnswerSpec,
  answer: ProviderAnswer,
  usage: TokenUsage,
  at: number,
): object {
  const { id, format, routed_model: model } = spec
  const head = { id, created: Math.floor(at / 1000), model }
  const routed = {
    requestedRoute: spec.requested_route,
    route: { id: model },
    failover: spec.failover,
  }
  const service = serviceObject(routed, spec.receipt?.jti ?? null)
  const report = answer.tally.report(usage)
  return BODIES[format.door](answer, head, { report, service, stopSequences: stopsOf(spec) })
}

interface BodyParts {
  readonly report: UsageReport | undefined
  readonly service: object
  readonly stopSequences: readonly string[]
}

type WriteBody = (answer: ProviderAnswer, head: AnswerHead, parts: BodyParts) => object

const BODIES: Readonly<Record<WholeAnswerSpec['format']['door'], WriteBody>> = {
  chat: (answer, head, { report, service }) => chatCompletionBody(answer, head, report, service),
  messages: (answer, head, { report, service, stopSequences }) =>
    messageBody(answer, head, report, service, stopSequences),
}

function stopsOf({ format }: WholeAnswerSpec): readonly string[] {
  return format.door === 'messages' ? format.stop_sequences : []
}

/** Digests of the three bodies that are known here. */
interface Digests {
  readonly request: string
  readonly response: string
  readonly client: string
}

function claimsOf(
  spec: WholeAnswerSpec,
  digests: Digests,
  usage: TokenUsage,
  at: number,
): ExchangeClaims | undefined {
  const { receipt } = spec
  if (receipt === null) return undefined
  return exchangeClaims({
    receiptId: receipt.jti,
    issuedAt: at,
    endpoint: receipt.endpoint,
    requestedRoute: spec.requested_route,
    routedModel: spec.routed_model,
    failover: spec.failover,
    constraints: receipt.constraints,
    promptTokens: receipt.bills_tokens ? usage.promptTokens : 0,
    completionTokens: receipt.bills_tokens ? usage.completionTokens : 0,
    digests: {
      providerRequest: digests.request,
      providerResponse: digests.response,
      clientRequest: receipt.client_request_digest,
      clientResponse: digests.client,
    },
    decoded: false,
  })
}

/** FIPS 180-4, lowercase hex. */
function sha256(bytes: Uint8Array): string {
  return hash('sha256', bytes)
}
