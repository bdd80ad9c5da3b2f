import { utf8 } from '../../protocol/bytes.ts'
import { JsonOutline } from '../json/outline.ts'
import { runAtOnce } from '../json/steps.ts'
import { BrokenStream } from './broken-stream.ts'
import { choiceIndex } from './choice-index.ts'
import { NOTHING, type Delta } from './delta.ts'
import { EventFramer, type ServerSentEvent, type TakeMemory } from './event-framer.ts'
import { readFinishReason } from './finish-reason.ts'
import { optionalObject, optionalObjects, parseJsonObject, type JsonObject } from './json-object.ts'
import { readLogprobs } from './logprobs.ts'
import { readMessageText, utf8Length } from './message-text.ts'
import { producedTextBytes } from './produced-text.ts'
import { readErrorEvent, refuseProviderError } from './provider-error.ts'
import { readResponseId } from './response-id.ts'
import { readStopSequence } from './stop-sequence.ts'
import { TextFrames } from './text-frames.ts'
import { finishReasonOfCalls, hasCalls, ToolFragments } from './tool-calls.ts'
import { UsageTally } from './usage-tally.ts'

/** Events above this size are checked for the number of their values before they are parsed, characters. */
const LARGE_EVENT = 64 * 1024

/**
 * Maximum memory of the values of one event, by estimate, bytes. An event is parsed in one go, which for this many values
 * takes about a tenth of a second: the log probabilities of 4,000 tokens with 20 alternatives each.
 */
const MAX_EVENT_MEMORY = 16 * 1024 * 1024

/** Settings of the router for reading an answer. */
export interface ReadOptions {
  /** Generates the ids of tool calls that have none. */
  readonly id: string
  readonly includeReasoning: boolean
  /** Reserves memory for unfinished events; without it only the size of each event is limited. */
  readonly takeMemory?: TakeMemory
}

/** Receives the deltas of a provider's stream. */
export interface DeltaSink {
  /** Called once, before the first delta with content or at the finish reason. */
  commit(): void
  /** A delta of only content, whose characters need no escaping in a JSON string. */
  plainText(text: string): void
  delta(delta: Delta): void
}

/** Maximum number of frames, and of bytes, that a provider may send before its first delta with content. */
const MAX_OPENING_FRAMES = 64
export const MAX_OPENING_BYTES = 256 * 1024

const DONE = '[DONE]'

/**
 * Reads one provider's chat stream, whatever its dialect, into the internal sequence of deltas, and counts its usage. Only
 * listed fields are read, so that nothing that identifies the provider can leak. The sequence does not depend on how the
 * provider's bytes were split into reads. The finish reason is stored, not passed on.
 */
export class ProviderStream {
  readonly tally = new UsageTally()
  readonly #includeReasoning: boolean
  readonly #sink: DeltaSink
  readonly #framer: EventFramer
  readonly #tools: ToolFragments
  readonly #textFrames = new TextFrames()
  #committed = false
  #openingFrames = 0
  #finishReason: string | undefined
  #stopSequence: string | undefined
  /** The number of choices, by their indexes; below, the number of choices that have ended. */
  #choices = 1
  #endedChoices = 0
  #terminated = false
  #done = false
  #providerResponseId: string | undefined

  constructor({ id, includeReasoning, takeMemory }: ReadOptions, sink: DeltaSink) {
    this.#includeReasoning = includeReasoning
    this.#sink = sink
    this.#framer = new EventFramer((event) => this.#takeEvent(event), takeMemory)
    this.#tools = new ToolFragments(id)
  }

  /** Whether the first delta with content or the finish reason has arrived. */
  get committed(): boolean {
    return this.#committed
  }

  /** Events before the commit point; comments do not count. */
  get openingFrames(): number {
    return this.#openingFrames
  }

  /** Bytes of complete lines read so far, including comments; for use before the commit point. */
  get openingBytes(): number {
    return this.#framer.quietBytes
  }

  /**
   * Whether nothing more is needed from the provider: a finish reason has arrived, and after it usage, `[DONE]` or
   * the end.
   */
  get done(): boolean {
    return this.#done
  }

  get finishReason(): string | undefined {
    return this.#finishReason
  }

  /** The text that ended the answer, where the provider reports it. */
  get stopSequence(): string | undefined {
    return this.#stopSequence
  }

  /** The first `id` in the provider's answer. */
  get providerResponseId(): string | undefined {
    return this.#providerResponseId
  }

  /**
   * Processes the next provider bytes.
   * @throws BrokenStream; not usable after that
   */
  push(bytes: Uint8Array): void {
    if (this.#terminated) return
    try {
      this.#framer.push(bytes)
      this.#limitOpening()
    } catch (error) {
      // Anything after `[DONE]` is not part of the stream, so errors in it are ignored.
      if (!(error instanceof BrokenStream) || !this.#terminated) throw error
    }
  }

  /**
   * Ends the input: the provider's body has ended.
   * @throws BrokenStream `no_finish` where no finish reason was received
   */
  end(): void {
    if (this.#finishReason === undefined) throw new BrokenStream('no_finish')
    this.#done = true
  }

  #takeEvent(event: ServerSentEvent): void {
    if (this.#terminated) return
    this.#limitOpening()
    if (event.namedError) throw readErrorEvent(event.data)
    const data = event.data.trim()
    // An empty event has no content; some servers use it to keep connections alive.
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
      this.#textFrames.learn(data, this.#takeChunk(parseEvent(data)))
    } else {
      this.#sink.plainText(text)
      this.tally.addText(utf8Length(text))
    }
  }

  /**
   * Returns the text of a chunk that contains nothing else and could be repeated without changing a count; else undefined.
   */
  #takeChunk(chunk: JsonObject): string | undefined {
    refuseProviderError(chunk)
    const { id } = chunk
    this.#providerResponseId ??= readResponseId(id)
    const choices = optionalObjects(chunk['choices'])
    const onlyTexts = choices.map((choice, position) => this.#takeChoice(choice, position))
    // With several choices the first may finish before the others, and counts still grow after that. Until all have ended,
    // counts on a chunk with a choice may cover that choice alone (vLLM, `continuous_usage_stats`); after that, some servers
    // send the total there.
    const several = choices.length > 0 && this.#choices > 1
    const counted = this.tally.take(chunk['usage'], several && this.#endedChoices < this.#choices)
    if (counted && !several && this.#finishReason !== undefined) this.#done = true
    // A chunk that has a count of its own cannot serve as a pattern for chunks without one: the count covers its text
    // already.
    const isUncounted = this.tally.uncountedTextBytes > 0
    return choices.length === 1 && isUncounted ? onlyTexts[0] : undefined
  }

  #takeChoice(choice: JsonObject, position: number): string | undefined {
    const index = choiceIndex(choice, position)
    const isFirst = index === 0
    this.#choices = Math.max(this.#choices, index + 1)
    if (choice['finish_reason']) this.#endedChoices += 1
    const form = isFirst ? this.#tools.form : undefined
    this.tally.addText(producedTextBytes(choice['delta'], form))
    this.tally.take(choice['usage'], this.#choices > 1)
    if (!isFirst || this.#finishReason !== undefined) return undefined
    const reason = readFinishReason(choice['finish_reason'])
    const onlyText = this.#takeDelta(optionalObject(choice['delta']) ?? {}, choice['logprobs'])
    if (reason === undefined) return onlyText
    const toolCalls = this.#tools.end(reason)
    if (toolCalls.length > 0) this.#sink.delta({ ...NOTHING, toolCalls })
    this.#finishReason = finishReasonOfCalls(reason, this.#tools.form)
    this.#stopSequence = readStopSequence(choice)
    this.#commit()
    return undefined
  }

  #takeDelta(delta: JsonObject, rawLogprobs: unknown): string | undefined {
    const { content, reasoning, refusal } = readMessageText(delta)
    const toolCalls = this.#tools.rebuild(delta)
    if (content || reasoning || refusal || toolCalls.length > 0) this.#commit()
    const stripped = reasoning !== undefined && !this.#includeReasoning
    // Log probabilities contain the tokens, so they are hidden with their reasoning.
    const logprobs = stripped ? null : runAtOnce(readLogprobs(rawLogprobs))
    const shown = stripped ? undefined : reasoning
    const text = logprobs === null ? content || undefined : (content ?? '')
    if (!shown && text === undefined && !refusal && toolCalls.length === 0) return undefined
    this.#sink.delta({
      reasoning: shown,
      content: text,
      refusal,
      toolCalls,
      logprobs,
    })
    const isOnlyText = !reasoning && !refusal && logprobs === null && !hasCalls(delta)
    return isOnlyText ? content : undefined
  }

  #commit(): void {
    if (this.#committed) return
    this.#committed = true
    this.#sink.commit()
  }

  #limitOpening(): void {
    if (this.#committed) return
    if (this.#openingFrames > MAX_OPENING_FRAMES || this.openingBytes > MAX_OPENING_BYTES)
      throw new BrokenStream('opening_too_long')
  }
}

function parseEvent(data: string): JsonObject {
  if (data.length > LARGE_EVENT && memoryOf(data) > MAX_EVENT_MEMORY) {
    throw new BrokenStream('malformed')
  }
  return parseJsonObject(data)
}

function memoryOf(data: string): number {
  const bytes = utf8(data)
  const outline = new JsonOutline(bytes, Number.POSITIVE_INFINITY)
  try {
    outline.readTo(bytes.length)
    return outline.memory
  } catch {
    throw new BrokenStream('malformed')
  }
}
