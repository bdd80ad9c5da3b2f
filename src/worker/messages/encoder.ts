import type { AnswerEncoder } from '../completion/format.ts'
import { anthropicErrorBody, anthropicStreamError } from '../http/anthropic-errors.ts'
import { utf8 } from '../../protocol/bytes.ts'
import type { ApiError } from '../http/errors.ts'
import { JsonCursor } from '../json/scan.ts'
import { Blocks, type BlockHead } from '../stream/blocks.ts'
import { textDelta, type Delta } from '../stream/delta.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import type { AnswerEnd } from '../stream/encoder.ts'
import { EventText } from '../stream/event-text.ts'
import { choiceDelta, type ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import { messageUsage, stopReason } from './message-json.ts'

/** Writes the events of a streamed message: start, each block from start to stop, then the message's delta and stop. */
export class MessagesEncoder implements AnswerEncoder {
  readonly #head: AnswerHead
  /** The router's own estimate of the prompt, shown until the provider's count is known. */
  readonly #promptEstimate: number
  readonly #blocks: Blocks
  readonly #contains = { tool: false, refusal: false }
  #index = -1
  #kind: BlockHead['kind'] = 'text'
  readonly #events = new EventText()
  /** The constant part of the open block's text events; serialised once for each block. */
  #textStart = ''

  constructor(head: AnswerHead, promptEstimate: number) {
    this.#head = head
    this.#promptEstimate = promptEstimate
    this.#blocks = new Blocks({
      start: (block) => this.#start(block),
      piece: (text) => this.#piece(text),
      end: () => this.#end(),
    })
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
    this.#blocks.take(delta)
    return this.#events.take()
  }

  finish({ finishReason, usage }: AnswerEnd): string {
    this.#blocks.finish()
    const delta = { stop_reason: stopReason(finishReason, this.#contains), stop_sequence: null }
    this.#events.add('message_delta', { delta, usage: messageUsage(usage) })
    return this.#events.take()
  }

  close(_end: AnswerEnd, service: object): string {
    this.#events.add('message_stop', { service })
    return this.#events.take()
  }

  /**
   * The error event, after the end of a block of text or thinking that is open: where no block has ended, Claude Code
   * repeats the request without streaming. A tool call is left open, because some clients run it as soon as it has
   * ended.
   */
  fail(error: ApiError): string {
    const delivered = this.#index >= 0
    if (delivered && this.#blocks.open !== 'tool') this.#blocks.abandon()
    const body = delivered ? anthropicStreamError(error) : anthropicErrorBody(error)
    return `${this.#events.take()}event: error\ndata: ${JSON.stringify(body)}\n\n`
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

  #end(): void {
    const index = this.#index
    // Clients store a signature and send it back. There is none, and none is required.
    if (this.#kind === 'reasoning') {
      const delta = { type: 'signature_delta', signature: '' }
      this.#events.add('content_block_delta', { index, delta })
    }
    this.#events.add('content_block_stop', { index })
  }
}

const PIECES = {
  reasoning: { type: 'thinking_delta', member: 'thinking' },
  text: { type: 'text_delta', member: 'text' },
  refusal: { type: 'text_delta', member: 'text' },
  tool: { type: 'input_json_delta', member: 'partial_json' },
}

function blockJson(block: BlockHead, text: string): object {
  if (block.kind === 'tool') {
    return { type: 'tool_use', id: block.id, name: block.name, input: toolInput(text) }
  }
  return block.kind === 'reasoning'
    ? { type: 'thinking', thinking: text, signature: '' }
    : { type: 'text', text }
}

/** Arguments that are not valid JSON, or nested too deeply to be written, are passed on as text. */
function toolInput(args: string): unknown {
  if (args === '') return {}
  try {
    new JsonCursor(utf8(args)).skip()
    return JSON.parse(args)
  } catch {
    return { arguments: args }
  }
}

interface MessageState {
  readonly id: string
  readonly model: string
  readonly content: readonly object[]
  readonly stop: string | null
  readonly usage: UsageReport | undefined
}

function messageJson({ id, model, content, stop, usage }: MessageState): object {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content,
    stop_reason: stop,
    stop_sequence: null,
    usage: messageUsage(usage),
  }
}

/** The body of a message that is not streamed. The format has one choice: the first. */
export function messageBody(
  { choices: [choice] }: ProviderAnswer,
  { id, model }: AnswerHead,
  usage: UsageReport | undefined,
  service: object,
): object {
  if (choice === undefined) throw new Error('internal error: an answer without a choice')
  const written: { readonly head: BlockHead; text: string }[] = []
  const blocks = new Blocks({
    start: (head) => void written.push({ head, text: '' }),
    piece: (text) => {
      const last = written.at(-1)
      if (last !== undefined) last.text += text
    },
    end: () => {},
  })
  blocks.take(choiceDelta(choice))
  blocks.finish()
  const { finishReason, refusal, toolCalls } = choice
  const contains = { tool: toolCalls.length > 0, refusal: refusal !== undefined }
  const stop = stopReason(finishReason, contains)
  const json = written.map(({ head, text }) => blockJson(head, text))
  return { ...messageJson({ id, model, content: json, stop, usage }), service }
}
