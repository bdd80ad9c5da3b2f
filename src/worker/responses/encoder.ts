import type { AnswerEncoder } from '../completion/format.ts'
import type { ApiError } from '../http/errors.ts'
import { failureCode } from '../http/responses-errors.ts'
import { Blocks, type BlockHead } from '../stream/blocks.ts'
import { textDelta, type Delta } from '../stream/delta.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import type { AnswerEnd } from '../stream/encoder.ts'
import { EventText } from '../stream/event-text.ts'
import type { Logprobs } from '../stream/logprobs.ts'
import { choiceDelta, type ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import {
  extendItem,
  itemJson,
  newItem,
  partJson,
  type ItemOptions,
  type OutputItem,
} from './items.ts'
import type { ResponsesRequest } from './request.ts'
import { incompleteReason, responseJson, type ResponseState } from './response-json.ts'
import { customInput } from './tools.ts'

/** The parts of a request that its answer depends on. */
export type AnswerOptions = Pick<ResponsesRequest, 'tools' | 'encryptedContent' | 'echo'>

/**
 * Writes the events of a streamed response: created, in progress, then each item from `added` to `done`, then
 * completed, incomplete or failed. No other types are sent, because one client library throws at those.
 */
export class ResponsesEncoder implements AnswerEncoder {
  readonly #head: AnswerHead
  readonly #options: AnswerOptions & ItemOptions
  readonly #blocks: Blocks
  readonly #done: object[] = []
  #sequence = 0
  readonly #events = new EventText()
  #item: OutputItem | undefined
  /** The constant part of the open item's text events; serialised once for each item. */
  #textStart = ''
  #opened = false

  constructor(head: AnswerHead, options: AnswerOptions) {
    this.#head = head
    this.#options = { ...options, answerId: head.id }
    this.#blocks = new Blocks({
      start: (block) => this.#start(block),
      piece: (text, logprobs) => this.#piece(text, logprobs),
      end: () => this.#end('completed'),
    })
  }

  open(): string {
    this.#opened = true
    const response = this.#response({ status: 'in_progress', output: [] })
    this.#event('response.created', { response })
    this.#event('response.in_progress', { response })
    return this.#events.take()
  }

  plainText(text: string): string {
    if (this.#blocks.open !== 'text' || this.#item === undefined) {
      return this.delta(textDelta(text))
    }
    this.#item.text += text
    return `${this.#textStart}${this.#sequence++},"delta":"${text}","logprobs":[]}\n\n`
  }

  delta(delta: Delta): string {
    this.#blocks.take(delta)
    return this.#events.take()
  }

  finish(end: AnswerEnd): string {
    if (incompleteReason(end) !== undefined) this.#end('incomplete')
    this.#blocks.finish()
    return this.#events.take()
  }

  close(end: AnswerEnd, service: object): string {
    const incomplete = incompleteReason(end)
    const status = incomplete === undefined ? 'completed' : 'incomplete'
    const state = { status, output: this.#done, usage: end.usage } as const
    const response = this.#response({ ...state, ...(incomplete && { incomplete }) })
    this.#event(`response.${status}`, { response, service })
    return this.#events.take()
  }

  fail(error: ApiError): string {
    const begun = this.#opened ? '' : this.open()
    const failure = { code: failureCode(error.code), message: error.message }
    const response = this.#response({ status: 'failed', output: this.#done, error: failure })
    this.#event('response.failed', { response })
    return begun + this.#events.take()
  }

  #response(state: ResponseState): object {
    return responseJson(this.#head, this.#options.echo, state)
  }

  #start(block: BlockHead): void {
    const item = newItem(block, this.#done.length, this.#options)
    this.#item = item
    const output_index = this.#done.length
    this.#event('response.output_item.added', {
      output_index,
      item: itemJson(item, 'in_progress', this.#options),
    })
    const place = { item_id: item.id, output_index }
    if (item.kind === 'reasoning') {
      const part = { type: 'summary_text', text: '' }
      this.#event('response.reasoning_summary_part.added', { ...place, summary_index: 0, part })
    } else if (item.kind !== 'tool') {
      this.#event('response.content_part.added', {
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
    // A custom tool's input is inside the arguments and can be read once they are complete.
    if (item.tool?.identity.kind === 'custom' || text === '') return
    const place = { item_id: item.id, output_index: this.#done.length }
    const { type, index } = PIECES[item.kind]
    const more = item.kind === 'text' ? { logprobs: logprobs?.content ?? [] } : {}
    this.#event(`${type}.delta`, { ...place, ...index, delta: text, ...more })
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
      this.#event(`${type}.done`, { ...place, ...index, ...name, [text]: item.text, ...more })
      this.#endPart(item, place)
    }
    const json = itemJson(item, status, this.#options)
    this.#event('response.output_item.done', { output_index: this.#done.length, item: json })
    this.#done.push(json)
    this.#item = undefined
  }

  #endCustom({ text }: OutputItem, place: object): void {
    const input = customInput(text)
    const type = 'response.custom_tool_call_input'
    this.#event(`${type}.delta`, { ...place, delta: input })
    this.#event(`${type}.done`, { ...place, input })
  }

  #endPart(item: OutputItem, place: object): void {
    if (item.kind === 'tool') return
    const part =
      item.kind === 'reasoning' ? { type: 'summary_text', text: item.text } : partJson(item)
    const type = item.kind === 'reasoning' ? 'reasoning_summary_part' : 'content_part'
    this.#event(`response.${type}.done`, { ...place, ...PIECES[item.kind].index, part })
  }

  #event(type: string, members: object): void {
    this.#events.add(type, { sequence_number: this.#sequence++, ...members })
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

/** The body of a response that is not streamed. The format has one choice: the first. */
export function responseBody(
  { choices: [choice] }: ProviderAnswer,
  head: AnswerHead,
  usage: UsageReport | undefined,
  service: object,
  options: AnswerOptions,
): object {
  if (choice === undefined) throw new Error('internal error: an answer without a choice')
  const itemOptions = { ...options, answerId: head.id }
  const incomplete = incompleteReason(choice)
  const items: OutputItem[] = []
  const blocks = new Blocks({
    start: (block) => void items.push(newItem(block, items.length, itemOptions)),
    piece: (text, logprobs) => {
      const item = items.at(-1)
      if (item !== undefined) extendItem(item, text, logprobs)
    },
    end: () => {},
  })
  blocks.take(choiceDelta(choice))
  blocks.finish()
  const status = incomplete === undefined ? 'completed' : 'incomplete'
  const output = items.map((item, index) =>
    itemJson(item, index === items.length - 1 ? status : 'completed', options),
  )
  const state = { status, output, usage, ...(incomplete && { incomplete }) } as const
  return { ...responseJson(head, options.echo, state), service }
}
