import { utf8, type Bytes } from '../../protocol/bytes.ts'
import type { AnswerTail } from '../../protocol/stream-record.ts'
import { BrokenStream } from './broken-stream.ts'
import type { Delta } from './delta.ts'
import type { ChunkWriter } from './encoder.ts'
import { ProviderStream, type ReadOptions } from './provider-stream.ts'
import { answerEnd } from './streamed-answer.ts'
import type { TokenUsage } from './token-usage.ts'
import type { UsageTally } from './usage-tally.ts'

const NOTHING: Bytes = new Uint8Array(0)

/**
 * One provider stream on its way to the client, up to its last event: decoded into deltas and written in the client's
 * format, in a single synchronous stage. Worker and daemon both run it.
 *
 * Until the commit point, which is the first delta with content or the finish reason, `push` returns nothing, and the
 * attempt can still be abandoned without the client noticing. The finish reason is held back for the final events. The
 * result does not depend on how the provider's bytes were split into reads.
 */
export class AnswerChunks {
  readonly #writer: ChunkWriter
  readonly #provider: ProviderStream
  /** Deltas that came before the commit point. */
  #held: Delta[] = []
  /** Encoded events that `push` has not returned yet. */
  #pending = ''

  constructor(options: ReadOptions, writer: ChunkWriter) {
    this.#writer = writer
    this.#provider = new ProviderStream(options, {
      commit: () => this.#commit(),
      plainText: (text) => void (this.#pending += writer.plainText(text)),
      delta: (delta) => this.#take(delta),
    })
  }

  /** Whether the commit point has been passed: from then on this attempt is the one that the client sees. */
  get committed(): boolean {
    return this.#provider.committed
  }

  /** Events before the commit point; comments do not count. */
  get openingFrames(): number {
    return this.#provider.openingFrames
  }

  /** Bytes of complete lines read so far, including comments; for use before the commit point. */
  get openingBytes(): number {
    return this.#provider.openingBytes
  }

  /** Whether nothing more is needed from the provider. */
  get done(): boolean {
    return this.#provider.done
  }

  get finishReason(): string | undefined {
    return this.#provider.finishReason
  }

  /** The text that ended the answer, where the provider reports it. */
  get stopSequence(): string | undefined {
    return this.#provider.stopSequence
  }

  /** The provider's counts so far. */
  get tally(): UsageTally {
    return this.#provider.tally
  }

  /** The provider's counts so far, merged by maximum; undefined where it reported none. */
  get usage(): TokenUsage | undefined {
    return this.#provider.tally.tokens
  }

  /** UTF-8 bytes of text, in all choices, since the provider last reported a count of completion tokens. */
  get uncountedTextBytes(): number {
    return this.#provider.tally.uncountedTextBytes
  }

  /** The provider's total count of prompt and answer, where it reported only the total, after all text received so far. */
  get totalTokens(): number | undefined {
    return this.#provider.tally.produced.totalTokens
  }

  /** The first `id` in the provider's answer. */
  get providerResponseId(): string | undefined {
    return this.#provider.providerResponseId
  }

  /**
   * Processes the next provider bytes and returns what to send now.
   * @throws BrokenStream; not usable after that
   */
  push(bytes: Uint8Array): Bytes {
    try {
      this.#provider.push(bytes)
    } catch (error) {
      throw this.#withOutput(error)
    }
    return this.#release()
  }

  /**
   * Ends the input: the provider's body has ended.
   * @throws BrokenStream `no_finish` where no finish reason was received
   */
  end(): Bytes {
    try {
      this.#provider.end()
    } catch (error) {
      throw this.#withOutput(error)
    }
    return this.#release()
  }

  /**
   * The events between the content and the last event; to be called once a finish reason is known.
   * @param billed the counts to show; default: the provider's
   */
  finish(billed?: TokenUsage): Bytes {
    return utf8(this.#writer.finish(answerEnd(this, billed)))
  }

  /** The state from which the last event continues. */
  get tail(): AnswerTail {
    return this.#writer.tail
  }

  #commit(): void {
    this.#pending = this.#writer.open()
    for (const delta of this.#held) this.#pending += this.#writer.delta(delta)
    this.#held = []
  }

  #take(delta: Delta): void {
    if (this.committed) this.#pending += this.#writer.delta(delta)
    else this.#held.push(delta)
  }

  #release(): Bytes {
    if (!this.committed || this.#pending === '') return NOTHING
    const bytes = utf8(this.#pending)
    this.#pending = ''
    return bytes
  }

  /** Adds the output from before the error in the same read, which still belongs to the client. */
  #withOutput(error: unknown): unknown {
    return error instanceof BrokenStream ? error.after(this.#release()) : error
  }
}
