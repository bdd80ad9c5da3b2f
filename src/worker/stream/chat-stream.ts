import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { BrokenStream } from './broken-stream.ts'
import { EventFramer, type ServerSentEvent } from './event-framer.ts'
import { readFinishReason, type FinishReason } from './finish-reason.ts'
import { optionalObject, optionalObjects, parseJsonObject, type JsonObject } from './json-object.ts'
import { readLogprobs, type Logprobs } from './logprobs.ts'
import { readMessageText, utf8Length } from './message-text.ts'
import { readErrorEvent, refuseProviderError } from './provider-error.ts'
import { TextFrames } from './text-frames.ts'
import type { TokenUsage } from './token-usage.ts'
import { ToolFragments } from './tool-calls.ts'
import { UsageTally } from './usage-tally.ts'

export interface ChatStreamOptions {
  /** The `id` of every chunk. */
  readonly id: string
  /** Unix seconds, the `created` of every chunk. */
  readonly created: number
  /** The routed route, the `model` of every chunk. */
  readonly model: string
  readonly includeReasoning: boolean
  /** Whether reasoning also goes out under its older name `reasoning_content`. */
  readonly reasoningAlias: boolean
  /** Whether the client asked for `usage` on the last chunk. */
  readonly includeUsage: boolean
}

/** Most frames, and most bytes, that a provider may send before its first real delta. */
const MAX_OPENING_FRAMES = 64
export const MAX_OPENING_BYTES = 256 * 1024

const NOTHING: Bytes = new Uint8Array(0)
const DONE = '[DONE]'

/**
 * One provider stream on its way to the client: parsed, rebuilt from an allow-list of fields and counted in a
 * single synchronous stage. Nothing is passed through, so nothing of the provider's identity can leak.
 *
 * Until the commit point, which is the first real delta or finish reason, `push` returns nothing and the
 * attempt can still be given up unseen. The finish reason itself is held for `finish`. The outcome and the
 * bytes sent do not depend on how the provider's bytes were cut into reads.
 */
export class ChatStream {
  readonly #options: ChatStreamOptions
  readonly #framer: EventFramer
  readonly #tools: ToolFragments
  readonly #usage = new UsageTally()
  readonly #textFrames = new TextFrames()
  readonly #head: string
  /** Rebuilt chunks that `push` has not returned yet. */
  #pending = ''
  #committed = false
  #openingFrames = 0
  #finishReason: FinishReason | undefined
  #severalChoices = false
  #terminated = false
  #done = false
  #deliveredTextBytes = 0
  #providerResponseId: string | undefined

  constructor(options: ChatStreamOptions) {
    this.#options = options
    this.#framer = new EventFramer((event) => this.#takeEvent(event))
    this.#tools = new ToolFragments(options.id)
    const { id, created, model } = options
    const shared = JSON.stringify({ id, object: 'chat.completion.chunk', created, model })
    this.#head = `data: ${shared.slice(0, -1)},"choices":[{"index":0,"delta":`
  }

  /** Whether the commit point is behind: from here on this attempt is the one the client sees. */
  get committed(): boolean {
    return this.#committed
  }

  /** Events that came before the commit point; comments are no events. */
  get openingFrames(): number {
    return this.#openingFrames
  }

  /** Bytes of complete lines read so far, comments included; meant for use before the commit point. */
  get openingBytes(): number {
    return this.#framer.quietBytes
  }

  /** Whether nothing more is needed from the provider: a finish reason, and usage, `[DONE]` or the end after it. */
  get done(): boolean {
    return this.#done
  }

  get finishReason(): FinishReason | undefined {
    return this.#finishReason
  }

  /** The provider's counts so far, merged by maximum; undefined where it gave none. */
  get usage(): TokenUsage | undefined {
    return this.#usage.tokens
  }

  /** UTF-8 bytes of content, reasoning, refusal and tool arguments rebuilt for the client. */
  get deliveredTextBytes(): number {
    return this.#deliveredTextBytes
  }

  /** The first `id` the provider gave its answer. */
  get providerResponseId(): string | undefined {
    return this.#providerResponseId
  }

  /** Takes the next provider bytes and returns what to send now. Throws `BrokenStream`; not usable after that. */
  push(bytes: Uint8Array): Bytes {
    try {
      if (!this.#terminated) this.#framer.push(bytes)
      this.#limitOpening()
    } catch (error) {
      if (!(error instanceof BrokenStream)) throw error
      // What follows `[DONE]` is no part of the stream, so no fault in it counts.
      if (!this.#terminated) throw new BrokenStream(error.reason, this.#release())
    }
    return this.#release()
  }

  /** The provider ended its body. Throws `BrokenStream` `no_finish` where no finish reason was seen. */
  end(): Bytes {
    if (this.#finishReason === undefined) throw new BrokenStream('no_finish', this.#release())
    this.#done = true
    return this.#release()
  }

  /**
   * The last data chunk, with finish reason, usage (where the client asked) and `service`, and the terminator.
   * `estimate` stands in for usage that the provider did not give. Only to be called once a finish reason is known.
   */
  finish(service: object, estimate?: TokenUsage): Bytes {
    if (this.#finishReason === undefined) throw new Error('internal error: no finish reason')
    const usage = this.#options.includeUsage ? this.#usage.show(estimate) : undefined
    const tail = JSON.stringify({ ...(usage !== undefined && { usage }), service }).slice(1)
    const choice = `{},"finish_reason":${JSON.stringify(this.#finishReason)}}]`
    return utf8(`${this.#head}${choice},${tail}\n\ndata: ${DONE}\n\n`)
  }

  #takeEvent(event: ServerSentEvent): void {
    if (this.#terminated) return
    this.#limitOpening()
    if (event.namedError) throw readErrorEvent(event.data)
    const data = event.data.trim()
    // An empty event carries nothing; some servers keep connections alive with it.
    if (data === DONE) this.#terminate()
    else if (data !== '') this.#takeData(data)
    if (!this.#committed) this.#openingFrames += 1
    this.#limitOpening()
  }

  #terminate(): void {
    if (this.#finishReason === undefined) throw new BrokenStream('no_finish')
    this.#terminated = true
    this.#done = true
  }

  #takeData(data: string): void {
    const text = this.#finishReason === undefined ? this.#textFrames.read(data) : undefined
    if (text === undefined) {
      this.#textFrames.learn(data, this.#takeChunk(parseJsonObject(data)))
    } else {
      this.#pending += `${this.#head}{"content":"${text}"},"finish_reason":null}]}\n\n`
      this.#deliveredTextBytes += utf8Length(text)
    }
  }

  /** Returns the text of a chunk that said nothing else, or nothing that would count when said again. */
  #takeChunk(chunk: JsonObject): string | undefined {
    refuseProviderError(chunk)
    const { id } = chunk
    if (typeof id === 'string' && id !== '') this.#providerResponseId ??= id
    const counted = this.#usage.take(chunk['usage'])
    const choices = optionalObjects(chunk['choices'])
    const onlyTexts = choices.map((choice, position) => this.#takeChoice(choice, position))
    // With several choices the first may finish before the others, and counts still grow after that.
    const final = choices.length === 0 || !this.#severalChoices
    if (counted && final && this.#finishReason !== undefined) this.#done = true
    return choices.length === 1 ? onlyTexts[0] : undefined
  }

  #takeChoice(choice: JsonObject, position: number): string | undefined {
    this.#usage.take(choice['usage'])
    const isFirst = (choice['index'] ?? position) === 0
    if (!isFirst) this.#severalChoices = true
    if (!isFirst || this.#finishReason !== undefined) return undefined
    const reason = readFinishReason(choice['finish_reason'])
    const onlyText = this.#takeDelta(optionalObject(choice['delta']) ?? {}, choice['logprobs'])
    if (reason === undefined) return onlyText
    this.#finishReason = reason
    this.#commit()
    return undefined
  }

  #takeDelta(delta: JsonObject, rawLogprobs: unknown): string | undefined {
    const { content, reasoning, refusal } = readMessageText(delta)
    const toolCalls = this.#tools.rebuild(delta['tool_calls'])
    if (content || reasoning || refusal || toolCalls.length > 0) this.#commit()
    const stripped = reasoning !== undefined && !this.#options.includeReasoning
    // Log probabilities spell out the tokens, so they go with the reasoning they belong to.
    const logprobs = stripped ? null : readLogprobs(rawLogprobs)
    const shown = stripped ? undefined : reasoning
    const rebuilt = {
      ...(shown !== undefined && { reasoning: shown }),
      ...(shown !== undefined && this.#options.reasoningAlias && { reasoning_content: shown }),
      ...((content || logprobs !== null) && { content: content ?? '' }),
      ...(refusal && { refusal }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    }
    if (Object.keys(rebuilt).length === 0) return undefined
    this.#write(rebuilt, logprobs)
    const called = toolCalls.map((call) => call.function.arguments)
    this.#deliveredTextBytes += utf8Length([shown, content, refusal, ...called].join(''))
    if (reasoning || refusal || logprobs !== null || delta['tool_calls']) return undefined
    return content
  }

  #commit(): void {
    if (this.#committed) return
    this.#committed = true
    const held = this.#pending
    this.#pending = ''
    this.#write({ role: 'assistant', content: '' }, null)
    this.#pending += held
  }

  #write(delta: object, logprobs: Logprobs | null): void {
    const spelled = logprobs === null ? '' : `,"logprobs":${JSON.stringify(logprobs)}`
    this.#pending += `${this.#head}${JSON.stringify(delta)}${spelled},"finish_reason":null}]}\n\n`
  }

  #limitOpening(): void {
    if (this.#committed) return
    if (this.#openingFrames > MAX_OPENING_FRAMES || this.openingBytes > MAX_OPENING_BYTES)
      throw new BrokenStream('opening_too_long')
  }

  #release(): Bytes {
    if (!this.#committed || this.#pending === '') return NOTHING
    const bytes = utf8(this.#pending)
    this.#pending = ''
    return bytes
  }
}

/** The stage for one provider stream. */
export function createChatStream(options: ChatStreamOptions): ChatStream {
  return new ChatStream(options)
}
