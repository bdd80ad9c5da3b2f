import type { AnswerTail } from '../../protocol/stream-record.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import { Blocks, type BlockHead } from '../stream/blocks.ts'
import { textDelta, type Delta } from '../stream/delta.ts'
import type { AnswerEnd, ChunkWriter } from '../stream/encoder.ts'
import type { TakeMemory } from '../stream/event-framer.ts'
import { EventText } from '../stream/event-text.ts'
import { HeldText } from './held-text.ts'
import { blockEnd, blockJson, messageJson, messageStop, messageUsage } from './message-json.ts'

/** What the chunks of a message depend on. */
export interface MessagesChunksOptions {
  /** The router's own estimate of the prompt, shown until the provider's count is known. */
  readonly promptEstimate: number
  /** The stop sequences of the request. */
  readonly stopSequences: readonly string[]
  /** Reserves memory for text that waits until its block can start; without it, only the length of that text is limited. */
  readonly takeMemory?: TakeMemory | undefined
}

/**
 * Writes the events of a streamed message up to the last one: its start, each block from start to stop, and the
 * `message_delta`.
 */
export class MessagesChunks implements ChunkWriter {
  readonly #head: AnswerHead
  readonly #promptEstimate: number
  readonly #stopSequences: readonly string[]
  readonly #blocks: Blocks
  readonly #contains = { tool: false, refusal: false }
  #index = -1
  #kind: BlockHead['kind'] = 'text'
  readonly #events = new EventText()
  /** The constant part of the open block's text events; serialised once for each block. */
  #textStart = ''

  constructor(head: AnswerHead, options: MessagesChunksOptions) {
    const { promptEstimate, stopSequences, takeMemory } = options
    this.#head = head
    this.#promptEstimate = promptEstimate
    this.#stopSequences = stopSequences
    const held = new HeldText(takeMemory)
    const sink = {
      start: (block: BlockHead) => this.#start(block),
      piece: (text: string) => this.#piece(text),
      end: () => this.#events.append(blockEnd(this.#index, this.#kind)),
    }
    this.#blocks = new Blocks(sink, (text, logprobs) => held.addPiece(text, logprobs))
  }

  open(): string {
    const nothing = { cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: undefined }
    const usage = { promptTokens: this.#promptEstimate, completionTokens: 0, ...nothing }
    const { id, model } = this.#head
    const message = messageJson({ id, model, content: [], stop: null, usage })
    this.#events.add('message_start', { message })
    this.#events.add('ping', {})
    return this.#events.take()
  }

  plainText(text: string): string {
    if (this.#blocks.open !== 'text') {
      return this.delta(textDelta(text))
    }
    return `${this.#textStart}"${text}"}}\n\n`
  }

  delta(delta: Delta): string {
    return this.#events.during(() => this.#blocks.take(delta))
  }

  finish(end: AnswerEnd): string {
    return this.#events.during(() => {
      this.#blocks.finish()
      const delta = messageStop(end, this.#contains, this.#stopSequences)
      this.#events.add('message_delta', { delta, usage: messageUsage(end.usage) })
    })
  }

  get tail(): AnswerTail {
    return { events: 0, blocks: this.#index + 1, open: this.#blocks.open ?? null, output: [] }
  }

  #start(block: BlockHead): void {
    this.#index += 1
    this.#kind = block.kind
    if (block.kind === 'tool') this.#contains.tool = true
    if (block.kind === 'refusal') this.#contains.refusal = true
    const index = this.#index
    this.#events.add('content_block_start', { index, content_block: blockJson(block, '') })
    const type = 'content_block_delta'
    const start = JSON.stringify({ type, index, delta: { type: 'text_delta' } }).slice(0, -2)
    this.#textStart = `event: ${type}\ndata: ${start},"text":`
  }

  #piece(text: string): void {
    if (text === '') return
    const { type, member } = PIECES[this.#kind]
    this.#events.add('content_block_delta', { index: this.#index, delta: { type, [member]: text } })
  }
}

const PIECES = {
  reasoning: { type: 'thinking_delta', member: 'thinking' },
  text: { type: 'text_delta', member: 'text' },
  refusal: { type: 'text_delta', member: 'text' },
  tool: { type: 'input_json_delta', member: 'partial_json' },
}
