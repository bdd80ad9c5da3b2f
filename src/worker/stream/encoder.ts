import type { Delta } from './delta.ts'
import type { UsageReport } from './usage-tally.ts'

/** How an answer ended. */
export interface AnswerEnd {
  readonly finishReason: string
  /** Undefined where neither the provider nor the router has counts. */
  readonly usage: UsageReport | undefined
}

/**
 * Writes what comes of an answer as the server-sent events of one format. Each method returns the text of complete
 * events, in the order of the calls: `open` once, then any number of `plainText` and `delta`.
 */
export interface ChunkWriter {
  open(): string
  /** Content alone, of characters that need no escaping in a JSON string. */
  plainText(text: string): string
  delta(delta: Delta): string
}

/** Writes a whole answer: after its chunks `finish` once and `close` once. */
export interface StreamEncoder extends ChunkWriter {
  /** The events before the last one. */
  finish(end: AnswerEnd): string
  /** The last event, which alone carries the extension object `service`. */
  close(end: AnswerEnd, service: object): string
}
