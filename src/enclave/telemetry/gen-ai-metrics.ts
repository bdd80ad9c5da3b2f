import type { Histogram, Meter } from '@opentelemetry/api'
import { OPERATION_SECONDS, type Span } from '../../protocol/telemetry.ts'

/** Bucket boundaries that OpenTelemetry's conventions for generative models advise. */
const SECONDS = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)

/** The attributes of a settlement's span that its measurements carry; no others. */
const ATTRIBUTES = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
] as const

/** `gen_ai.token.type`, by the span attribute that holds the count. */
const TOKEN_TYPES = {
  'gen_ai.usage.input_tokens': 'input',
  'gen_ai.usage.output_tokens': 'output',
} as const

/**
 * The histograms that OpenTelemetry's conventions for generative models ask of a client, filled from the spans of
 * settlements (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/). Counts of tokens that are zero are
 * not recorded: a transcription billed by time and the output of embeddings have none.
 */
export class GenAiMetrics {
  readonly #duration: Histogram
  readonly #tokens: Histogram

  constructor(meter: Meter) {
    this.#duration = meter.createHistogram('gen_ai.client.operation.duration', {
      description: 'From the start of the attempt that served until its exchange was settled.',
      unit: 's',
      advice: { explicitBucketBoundaries: SECONDS },
    })
    this.#tokens = meter.createHistogram('gen_ai.client.token.usage', {
      description: 'Settled tokens of an exchange.',
      unit: '{token}',
      advice: { explicitBucketBoundaries: TOKENS },
    })
  }

  /** Records a settlement; other spans are ignored. */
  take({ attributes }: Pick<Span, 'attributes'>): void {
    const seconds = attributes[OPERATION_SECONDS]
    if (typeof seconds !== 'number') return
    const of = Object.fromEntries(ATTRIBUTES.map((name) => [name, attributes[name]]))
    this.#duration.record(seconds, of)
    for (const [name, type] of Object.entries(TOKEN_TYPES)) {
      const count = attributes[name]
      if (typeof count !== 'number' || count === 0) continue
      this.#tokens.record(count, { ...of, 'gen_ai.token.type': type })
    }
  }
}
