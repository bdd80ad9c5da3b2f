import { utf8, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerTail } from '../../protocol/stream-record.ts'
import type { Produced } from './billed-usage.ts'
import type { AnswerEnd, LastEvent } from './encoder.ts'
import type { TokenUsage } from './token-usage.ts'
import type { UsageTally } from './usage-tally.ts'

/** A streamed answer that has ended: what is billed for it, and its last events. */
export interface StreamedAnswer extends Produced {
  readonly finishReason: string | undefined
  /** The first `id` in the provider's answer. */
  readonly providerResponseId: string | undefined
  /**
   * The events before the last one that were not sent yet. To be called once a finish reason is known.
   * @param billed the counts to show; default: the provider's
   */
  finish(billed?: TokenUsage): Bytes
  /** The last event, with finish reason, usage and `service`. Only to be called after `finish`. */
  close(service: object, billed?: TokenUsage): Bytes
}

/** The facts of an answer whose events, except the last, were written by the daemon. */
export interface CountedAnswer {
  readonly finishReason: string | undefined
  readonly tally: UsageTally
  readonly providerResponseId: string | undefined
  readonly tail: AnswerTail
}

const NOTHING: Bytes = new Uint8Array(0)

/** The answer whose events were written by the daemon, with the last event in this format. */
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

/**
 * How an answer ended.
 * @param billed the counts to show; default: the provider's
 */
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
