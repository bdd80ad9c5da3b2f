import { utf8, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerTail } from '../../protocol/stream-record.ts'
import type { Produced } from './billed-usage.ts'
import type { AnswerEnd, LastEvent } from './encoder.ts'
import type { TokenUsage } from './token-usage.ts'
import type { UsageTally } from './usage-tally.ts'

/** A streamed answer of which nothing more comes: what is billed of it, and its last events. */
export interface StreamedAnswer extends Produced {
  readonly finishReason: string | undefined
  /** The first `id` in the provider's answer. */
  readonly providerResponseId: string | undefined
  /**
   * The events before the last one that were not sent yet. `billed` are the counts to show; without it the provider's. To be called once a
   * finish reason is known.
   */
  finish(billed?: TokenUsage): Bytes
  /** The last event, with finish reason, usage and `service`. Only to be called after `finish`. */
  close(service: object, billed?: TokenUsage): Bytes
}

/** What is known of an answer whose events were written elsewhere, all but the last. */
export interface CountedAnswer {
  readonly finishReason: string | undefined
  readonly tally: UsageTally
  readonly providerResponseId: string | undefined
  readonly tail: AnswerTail
}

const NOTHING: Bytes = new Uint8Array(0)

/** The answer whose events were written elsewhere, with the last one of this format. */
export function countedAnswer(counted: CountedAnswer, last: LastEvent): StreamedAnswer {
  const { finishReason, tally, providerResponseId, tail } = counted
  return {
    finishReason,
    ...tally.produced,
    providerResponseId,
    finish: () => NOTHING,
    close: (service, billed) => utf8(last.close(tail, answerEnd(counted, billed), service)),
  }
}

/** How an answer ended; `billed` are the counts to show, without it the provider's. */
export function answerEnd(
  {
    finishReason,
    stopSequence,
    tally,
  }: Pick<CountedAnswer, 'finishReason' | 'tally'> & Pick<AnswerEnd, 'stopSequence'>,
  billed: TokenUsage | undefined,
): AnswerEnd {
  if (finishReason === undefined) throw new Error('internal error: no finish reason')
  return { finishReason, stopSequence, usage: tally.report(billed) }
}
