import type { Bytes } from '../../protocol/bytes.ts'
import type { Constraints } from '../../protocol/constraints.ts'
import type { Context } from '../context.ts'
import type { IdempotentRequest } from '../idempotency/idempotent-request.ts'
import type { TranscriptionPlan } from '../routing/plan-transcription.ts'
import type { Admission } from '../settle/admit.ts'
import type { TranscriptionRequest } from './request.ts'
import { countedPrompt, withinTotal } from '../stream/billed-usage.ts'
import { capTokens } from '../stream/cap-tokens.ts'
import type { Exchange } from '../settle/exchange.ts'
import { serviceObject, type ServiceObject } from '../stream/service-object.ts'
import type { BillingUnit } from '../../protocol/config.ts'
import type { Route } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { TokenUsage } from '../stream/token-usage.ts'
import { maxUsage, typicalSeconds, typicalUsage } from './estimate.ts'
import type { Transcript } from './transcript.ts'

/** An admitted transcription request. */
export interface AdmittedTranscription {
  readonly context: Context
  readonly parsed: TranscriptionRequest
  readonly plan: TranscriptionPlan
  /** What the request and its key require of the provider. */
  readonly constraints: Constraints | undefined
  readonly admission: Admission
  readonly receipt: boolean
  /** Form fields and request headers that have no effect on a transcription. */
  readonly unused: readonly string[]
  /** Of a request with an `Idempotency-Key`. */
  readonly idempotent: IdempotentRequest | undefined
  /** The client's body bytes as received; the file is a view of them. */
  readonly clientRequest: Bytes
}

/** The parts of a transcript by which it is billed. */
interface Heard extends Pick<Transcript, 'seconds' | 'usage' | 'totalTokens'> {
  /** UTF-8 bytes of its text. */
  readonly textBytes: number
}

/** `service.usage` (see docs/api.md). */
interface ServiceUsage {
  readonly billing_unit: BillingUnit
  readonly audio_seconds?: number
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
}

/** The token counts of a transcription that is not priced by tokens. */
const NO_TOKENS: TokenUsage = {
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
}

/**
 * The record of a transcription for settlement. The provider's own figures are billed, limited to what the file can contain;
 * the price never depends on the response format. Audio without a reported duration is billed as measured.
 * @param measuredSeconds the router's own measurement, made where the provider reported no duration
 */
export function transcriptionExchange(
  admitted: AdmittedTranscription,
  attempt: PlannedAttempt,
  transcript: Heard,
  measuredSeconds: number | undefined,
): Exchange {
  const { context, plan, admission, parsed } = admitted
  const { route } = attempt
  const max = maxUsage(parsed, route)
  const reported = transcript.seconds
  const known = reported ?? measuredSeconds
  const seconds = Math.min(known ?? typicalSeconds(parsed.file.bytes.length), max.audioSeconds)
  const byToken = billingUnit(route) === 'token'
  const counted = transcript.usage
  const typical = typicalUsage(parsed, seconds, transcript.textBytes)
  const { tokens: claimed, estimated } = byToken
    ? claimedTokens(counted, {
        ...typical,
        ...withinTotal(typical, NO_TOKENS, transcript.totalTokens),
      })
    : { tokens: NO_TOKENS, estimated: known === undefined }
  const { usage, capped } = capTokens(claimed, max)
  const usageCapped = capped || (known !== undefined && known > seconds)
  const facts = { request_id: context.requestId, route: route.id }
  if (estimated) context.log('usage_estimated', facts)
  if (usageCapped) context.log('usage_capped', facts)
  return {
    requestId: context.requestId,
    admission,
    endpoint: '/v1/audio/transcriptions',
    modality: 'transcription',
    requestedRoute: plan.requestedRoute,
    route,
    failover: attempt.failover,
    constraints: admitted.constraints,
    usage,
    usageCapped,
    billedSeconds: seconds,
    reportedSeconds: reported === undefined ? null : seconds,
  }
}

/**
 * The provider's token counts, completed with typical ones: for the prompt where it reported none, and for the text where it
 * reported none although there is text.
 */
function claimedTokens(
  counted: TokenUsage | undefined,
  typical: TokenUsage,
): { readonly tokens: TokenUsage; readonly estimated: boolean } {
  if (counted === undefined) return { tokens: typical, estimated: true }
  const prompt = countedPrompt(counted)
  const { completionTokens } = counted.completionTokens > 0 ? counted : typical
  const tokens = { ...counted, promptTokens: prompt ?? typical.promptTokens, completionTokens }
  const estimated = prompt === undefined || completionTokens > counted.completionTokens
  return { tokens, estimated }
}

/**
 * The `service` object of a transcription. For routes priced by time it always contains the billed duration, even where only
 * the router measured it; for others the provider's, if any.
 */
export function transcriptionService(
  exchange: Exchange,
  receiptId: string | null,
): ServiceObject & { readonly usage: ServiceUsage } {
  const { usage, reportedSeconds, billedSeconds } = exchange
  const unit = billingUnit(exchange.route)
  const seconds = reportedSeconds ?? (isTime(unit) ? billedSeconds : undefined)
  return {
    ...serviceObject(exchange, receiptId),
    usage: {
      billing_unit: unit,
      ...(seconds !== undefined && { audio_seconds: seconds }),
      ...(unit === 'token' && {
        prompt_tokens: usage.promptTokens,
        completion_tokens: usage.completionTokens,
      }),
    },
  }
}

function isTime(unit: BillingUnit): boolean {
  return unit === 'audio_minute' || unit === 'audio_second'
}

function billingUnit(route: Route): BillingUnit {
  return route.config.pricing?.billing_unit ?? 'token'
}
