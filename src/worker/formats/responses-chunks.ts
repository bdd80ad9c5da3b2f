import type { AnswerTail } from '../../protocol/stream-record.ts'
import { Blocks, type BlockHead } from '../stream/blocks.ts'
import { textDelta, type Delta } from '../stream/delta.ts'
import type { AnswerEnd, ChunkWriter } from '../stream/encoder.ts'
import type { TakeMemory } from '../stream/event-framer.ts'
import type { Logprobs } from '../stream/logprobs.ts'
import { customInput } from './custom-input.ts'
import { HeldText } from './held-text.ts'
import {
  extendItem,
  itemJson,
  newItem,
  partJson,
  type ItemOptions,
  type OutputItem,
} from './response-items.ts'
import { incompleteReason, type OpeningEvents } from './response-json.ts'
import { SequencedEvents } from './sequenced-events.ts'

/** What the chunks of a response depend on. */
export interface ResponsesChunksOptions extends ItemOptions {
  /** The events before the first item, which depend on the request alone. */
  readonly opening: () => OpeningEvents
  /**
   * Reserves memory for the text, all of which the last event repeats; without it, only the length of the text is limited.
   */
  readonly takeMemory?: TakeMemory | undefined
}

/**
 * Writes the events of a streamed response up to the last one: created, in progress, then each item from `added` to `done`.
 */
export class ResponsesChunks implements ChunkWriter {
  readonly #options: ResponsesChunksOptions
  readonly #blocks: Blocks
  readonly #done: object[] = []
  readonly #events = new SequencedEvents()
  readonly #held: HeldText
  #item: OutputItem | undefined
  #lastStatus: 'completed' | 'incomplete' = 'completed'
  /** The constant part of the open item's text events; serialised once for each item. */
  #textStart = ''

  constructor(options: ResponsesChunksOptions) {
    this.#options = options
    this.#held = new HeldText(options.takeMemory)
    const sink = {
      start: (block: BlockHead) => this.#start(block),
      piece: (text: string, logprobs: Logprobs | null, hasWaited: boolean) => {
        // Text that had to wait was counted when it began to wait.
        if (!hasWaited) this.#held.addPiece(text, logprobs)
        this.#piece(text, logprobs)
      },
      end: (isLast: boolean) => this.#end(isLast ? this.#lastStatus : 'completed'),
    }
    this.#blocks = new Blocks(sink, (text, logprobs) => this.#held.addPiece(text, logprobs))
  }

  open(): string {
    const { text, count } = this.#options.opening()
    this.#events.skip(count)
    return text
  }

  plainText(text: string): string {
    if (this.#blocks.open !== 'text' || this.#item === undefined) {
      return this.delta(textDelta(text))
    }
    this.#held.add(text.length)
    this.#item.text += text
    return `${this.#textStart}${this.#events.next()},"delta":"${text}","logprobs":[]}\n\n`
  }

  delta(delta: Delta): string {
    return this.#events.during(() => this.#blocks.take(delta))
  }

  finish(end: AnswerEnd): string {
    return this.#events.during(() => {
      if (incompleteReason(end) !== undefined) this.#lastStatus = 'incomplete'
      this.#blocks.finish()
    })
  }

  get tail(): AnswerTail {
    return { events: this.#events.count, blocks: 0, open: null, output: this.#done }
  }

  #start(block: BlockHead): void {
    this.#held.add(0, ITEM_BYTES)
    const item = newItem(block, this.#done.length, this.#options)
    this.#item = item
    const output_index = this.#done.length
    this.#events.add('response.output_item.added', {
      output_index,
      item: itemJson(item, 'in_progress', this.#options),
    })
    const place = { item_id: item.id, output_index }
    if (item.kind === 'reasoning') {
      const part = { type: 'summary_text', text: '' }
      this.#events.add('response.reasoning_summary_part.added', {
        ...place,
        summary_index: 0,
        part,
      })
    } else if (item.kind !== 'tool') {
      this.#events.add('response.content_part.added', {
        ...place,
        content_index: 0,
        part: partJson(item),
      })
    }
    const type = 'response.output_text.delta'
    const start = JSON.stringify({ type, ...place, content_index: 0 }).slice(0, -1)
    this.#textStart = `event: ${type}\ndata: ${start},"sequence_number":`
  }

  #piece(text: string, logprobs: Logprobs | null): void {
    const item = this.#item
    if (item === undefined) return
    extendItem(item, text, logprobs)
    // A custom tool's input is part of the arguments, and can be read only once they are complete.
    if (item.tool?.identity.kind === 'custom' || text === '') return
    const place = { item_id: item.id, output_index: this.#done.length }
    const { type, index } = PIECES[item.kind]
    const more = item.kind === 'text' ? { logprobs: logprobs?.content ?? [] } : {}
    this.#events.add(`${type}.delta`, { ...place, ...index, delta: text, ...more })
  }

  #end(status: 'completed' | 'incomplete'): void {
    const item = this.#item
    if (item === undefined) return
    const place = { item_id: item.id, output_index: this.#done.length }
    if (item.tool?.identity.kind === 'custom') this.#endCustom(item, place)
    else {
      const { type, index, text } = PIECES[item.kind]
      const more = item.kind === 'text' ? { logprobs: item.logprobs } : {}
      const name = item.tool === undefined ? {} : { name: item.tool.identity.name }
      this.#events.add(`${type}.done`, { ...place, ...index, ...name, [text]: item.text, ...more })
      this.#endPart(item, place)
    }
    const json = itemJson(item, status, this.#options)
    this.#events.add('response.output_item.done', { output_index: this.#done.length, item: json })
    this.#done.push(json)
    this.#item = undefined
  }

  #endCustom({ text }: OutputItem, place: object): void {
    const input = customInput(text)
    const type = 'response.custom_tool_call_input'
    this.#events.add(`${type}.delta`, { ...place, delta: input })
    this.#events.add(`${type}.done`, { ...place, input })
  }

  #endPart(item: OutputItem, place: object): void {
    if (item.kind === 'tool') return
    const part =
      item.kind === 'reasoning' ? { type: 'summary_text', text: item.text } : partJson(item)
    const type = item.kind === 'reasoning' ? 'reasoning_summary_part' : 'content_part'
    this.#events.add(`response.${type}.done`, { ...place, ...PIECES[item.kind].index, part })
  }
}

/**
 * The events of each kind of text: their name, the position inside the item, and the member of `done` with the whole
 * text.
 */
const PIECES = {
  reasoning: { type: 'response.reasoning_summary_text', index: { summary_index: 0 }, text: 'text' },
  text: { type: 'response.output_text', index: { content_index: 0 }, text: 'text' },
  refusal: { type: 'response.refusal', index: { content_index: 0 }, text: 'refusal' },
  tool: { type: 'response.function_call_arguments', index: {}, text: 'arguments' },
}

/** Approximate memory for an item besides its text, bytes. */
const ITEM_BYTES = 512
