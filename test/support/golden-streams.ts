import { readdirSync, readFileSync } from 'node:fs'
import { BrokenStream } from '../../src/worker/stream/broken-stream.ts'
import { chatFormat } from '../../src/worker/chat/encoder.ts'
import { chatCompletionBody } from '../../src/worker/stream/chat-completion.ts'
import { AnswerStream } from '../../src/worker/stream/answer-stream.ts'
import { runAtOnce } from '../../src/worker/json/steps.ts'
import { decodeAnswer, parseJsonObject } from '../../src/worker/stream/json-object.ts'
import { readProviderAnswer } from '../../src/worker/stream/provider-answer.ts'
import type { TokenUsage } from '../../src/worker/stream/token-usage.ts'
import { concatBytes, fromHex, fromUtf8, utf8 } from '../../src/protocol/bytes.ts'

/** How the chat format reads and writes an answer in these tests. */
export interface ChatStreamOptions {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly includeReasoning: boolean
  readonly includeUsage: boolean
}

/** A recorded provider stream with what a client must see of it (`test/golden/streams`). */
export interface GoldenStream {
  readonly file: string
  readonly name: string
  readonly provider: string
  readonly options?: Partial<ChatStreamOptions>
  /** Provider text, or bytes in hex where they are no text. */
  readonly pieces: readonly (string | { readonly hex: string })[]
  /** The choice of each chunk before the last, less `index` and a null finish reason. */
  readonly chunks: readonly { readonly delta: object; readonly logprobs?: object }[]
  readonly outcome: SoundOutcome | BrokenOutcome
}

export interface SoundOutcome {
  readonly finish_reason: string
  /** `usage` of the last chunk; null where it has none. */
  readonly usage: object | null
  readonly provider_response_id: string | null
  /** The counts to bill, given where the client does not see them. */
  readonly tokens?: object
}

export interface BrokenOutcome {
  readonly broken: string
  readonly committed: boolean
}

/** What replaying a stream showed. */
export interface Replay {
  /** All bytes for the client, as text. */
  readonly text: string
  readonly outcome: SoundOutcome | BrokenOutcome
}

export const OPTIONS: ChatStreamOptions = {
  id: 'chatcmpl-golden',
  created: 1_763_600_000,
  model: 'nova/glm-5',
  includeReasoning: true,
  includeUsage: true,
}

/** The chat format's stage for one provider stream. */
export function createChatStream(options: ChatStreamOptions): AnswerStream {
  const format = chatFormat(options.includeUsage)
  return new AnswerStream(options, format.chunkWriter(options), format.lastEvents(options))
}

/** A provider's whole answer as the chat format passes it on. */
export function rebuildCompletion(body: Uint8Array, options: ChatStreamOptions) {
  const { choices, tally, ...facts } = runAtOnce(
    readProviderAnswer(parseJsonObject(decodeAnswer(body)), options),
  )
  return {
    ...facts,
    usage: tally.tokens,
    uncountedTextBytes: tally.uncountedTextBytes,
    finishReasons: choices.map(({ finishReason }) => finishReason),
    json: (service: object, billed?: TokenUsage) => {
      const answer = { choices, tally, ...facts }
      return JSON.stringify(chatCompletionBody(answer, options, tally.report(billed), service))
    },
  }
}

export const SERVICE = { routed_model: 'nova/glm-5', failover: false }

const FOLDER = new URL('../golden/streams/', import.meta.url)

/** Every golden stream. */
export function goldenStreams(): GoldenStream[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.json'))
  return files.map((file) => {
    // The files are ours; the replay shows at once when one has another shape.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const golden = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as GoldenStream
    return { ...golden, file }
  })
}

/** The provider's bytes of a golden stream. */
export function providerBytes(golden: Pick<GoldenStream, 'pieces'>): Uint8Array {
  const parts = golden.pieces.map((piece) =>
    typeof piece === 'string' ? utf8(piece) : fromHex(piece.hex),
  )
  return concatBytes(...parts)
}

/** Runs reads through a new stage to the end of the body; anything thrown but `BrokenStream` passes on. */
export function replay(
  reads: readonly Uint8Array[],
  options: ChatStreamOptions = OPTIONS,
): Replay & { readonly stream: ReturnType<typeof createChatStream> } {
  const stream = createChatStream(options)
  let text = ''
  try {
    for (const read of reads) text += fromUtf8(stream.push(read))
    text += fromUtf8(stream.end())
    text += fromUtf8(stream.finish())
    text += fromUtf8(stream.close(SERVICE))
  } catch (error) {
    if (!(error instanceof BrokenStream)) throw error
    text += fromUtf8(error.output)
    return { stream, text, outcome: { broken: error.reason, committed: stream.committed } }
  }
  const outcome = {
    finish_reason: stream.finishReason ?? 'none',
    usage: lastUsage(text),
    provider_response_id: stream.providerResponseId ?? null,
    tokens: stream.usage ?? {},
  }
  return { stream, text, outcome }
}

function lastUsage(text: string): object | null {
  const last = chunksOf(text).at(-1)
  return typeof last?.['usage'] === 'object' ? last['usage'] : null
}

/** The parsed events of a stream of ours, less the terminator. */
export function chunksOf(text: string): Record<string, unknown>[] {
  const events = text.split('\n\n').filter((event) => event !== '' && event !== 'data: [DONE]')
  return events.map((event) => {
    if (!event.startsWith('data: ')) throw new Error('an event without data')
    const chunk: unknown = JSON.parse(event.slice('data: '.length))
    if (!isRecord(chunk)) throw new Error('a chunk that is no object')
    return chunk
  })
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
