import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { AnswerChunks } from './answer-chunks.ts'
import type { ChunkWriter, LastEvent } from './encoder.ts'
import type { ReadOptions } from './provider-stream.ts'
import { answerEnd, type StreamedAnswer } from './streamed-answer.ts'
import type { TokenUsage } from './token-usage.ts'

/** One provider stream on its way to the client, with the last event of the answer. */
export class AnswerStream extends AnswerChunks implements StreamedAnswer {
  readonly #last: LastEvent

  constructor(options: ReadOptions, writer: ChunkWriter, last: LastEvent) {
    super(options, writer)
    this.#last = last
  }

  close(service: object, billed?: TokenUsage): Bytes {
    return utf8(this.#last.close(this.tail, answerEnd(this, billed), service))
  }
}
