import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { AnswerChunks } from './answer-chunks.ts'
import type { StreamEncoder } from './encoder.ts'
import type { ReadOptions } from './provider-stream.ts'
import { answerEnd, type StreamedAnswer } from './streamed-answer.ts'
import type { TokenUsage } from './token-usage.ts'

/** One provider stream on its way to the client, with the last events of the answer. */
export class AnswerStream extends AnswerChunks implements StreamedAnswer {
  readonly #encoder: StreamEncoder

  constructor(options: ReadOptions, encoder: StreamEncoder) {
    super(options, encoder)
    this.#encoder = encoder
  }

  finish(billed?: TokenUsage): Bytes {
    return utf8(this.#encoder.finish(answerEnd(this, billed)))
  }

  close(service: object, billed?: TokenUsage): Bytes {
    return utf8(this.#encoder.close(answerEnd(this, billed), service))
  }
}
