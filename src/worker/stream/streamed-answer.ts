import { utf8, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerEnd, StreamEncoder } from './encoder.ts'
import type { TokenUsage } from './token-usage.ts'
import type { UsageTally } from './usage-tally.ts'

/** A streamed answer of which nothing more comes: what is billed of it, and its last events. */
export interface StreamedAnswer {
  readonly finishReason: string | undefined
  /** The provider's counts, merged by maximum; undefined where it reported none. */
  readonly usage: TokenUsage | undefined
  /** UTF-8 bytes of text, in all choices, since the provider last reported a count of completion tokens. */
  readonly uncountedTextBytes: number
  /** The first `id` in the provider's answer. */
  readonly providerResponseId: string | undefined
  /**
   * The events before the last one. `billed` are the counts to show; without it the provider's. To be called once a
   * finish reason is known.
   */
  finish(billed?: TokenUsage): Bytes
  /** The last event, with finish reason, usage and `service`. Only to be called after `finish`. */
  close(service: object, billed?: TokenUsage): Bytes
}

/** What was counted of an answer whose chunks were written elsewhere. */
export interface CountedAnswer {
  readonly finishReason: string | undefined
  readonly tally: UsageTally
  readonly providerResponseId: string | undefined
}

/** The answer whose chunks were written elsewhere, with the last events of this encoder. */
export function countedAnswer(counted: CountedAnswer, encoder: StreamEncoder): StreamedAnswer {
  const { finishReason, tally, providerResponseId } = counted
  return {
    finishReason,
    usage: tally.tokens,
    uncountedTextBytes: tally.uncountedTextBytes,
    providerResponseId,
    finish: (billed) => utf8(encoder.finish(answerEnd(counted, billed))),
    close: (service, billed) => utf8(encoder.close(answerEnd(counted, billed), service)),
  }
}

/** How an answer ended; `billed` are the counts to show, without it the provider's. */
export function answerEnd(
  { finishReason, tally }: Pick<CountedAnswer, 'finishReason' | 'tally'>,
  billed: TokenUsage | undefined,
): AnswerEnd {
  if (finishReason === undefined) throw new Error('internal error: no finish reason')
  return { finishReason, usage: tally.report(billed) }
}
