import type { AnswerTail } from '../../protocol/stream-record.ts'
import type { Delta } from './delta.ts'
import type { UsageReport } from './usage-tally.ts'

/** How an answer ended. */
export interface AnswerEnd {
  readonly finishReason: string
  /**
   * The text that ended the answer, as the provider reports it; undefined where it reported none, or where only the last
   * event is still to come.
   */
  readonly stopSequence?: string | undefined
  /** Undefined where neither the provider nor the router has counts. */
  readonly usage: UsageReport | undefined
}

/**
 * Writes an answer as the server-sent events of one format, all but the last. Each method returns the text of complete
 * events, in the order of the calls: `open` once, then any number of `plainText` and `delta`, then `finish` once.
 */
export interface ChunkWriter {
  open(): string
  /** Content alone, of characters that need no escaping in a JSON string. */
  plainText(text: string): string
  delta(delta: Delta): string
  /** The events between the content and the last event. */
  finish(end: AnswerEnd): string
  /** The state from which the last event continues, at any time. */
  readonly tail: AnswerTail
}

/** The tail of an answer before anything was written. */
export const NOTHING_WRITTEN: AnswerTail = { events: 0, blocks: 0, open: null, output: [] }

/** Writes the last event of a complete answer, the only one that carries the extension object `service`. */
export interface LastEvent {
  close(tail: AnswerTail, end: AnswerEnd, service: object): string
}
