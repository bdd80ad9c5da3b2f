import { fromUtf8 } from '../../src/protocol/bytes.ts'
import { chatFormat } from '../../src/worker/chat/encoder.ts'
import type { AnswerFormat } from '../../src/worker/completion/format.ts'
import { ApiError } from '../../src/worker/http/errors.ts'
import { messagesFormat } from '../../src/worker/messages/encoder.ts'
import { responsesFormat } from '../../src/worker/responses/encoder.ts'
import type { AnswerHead } from '../../src/worker/stream/answer-head.ts'
import { AnswerStream } from '../../src/worker/stream/answer-stream.ts'
import { billedUsage, type BillingBound } from '../../src/worker/stream/billed-usage.ts'
import { BrokenStream } from '../../src/worker/stream/broken-stream.ts'
import { SERVICE } from './golden-streams.ts'

/** What a client can read of an answer, whichever API format it used. */
export interface Reading {
  reasoning: string
  text: string
  readonly calls: { id: string; name: string; arguments: string }[]
}

/** An API format with a plain reader of its streams and of its bodies. */
export interface ReadableApi {
  readonly format: AnswerFormat
  readonly readStream: (events: readonly Json[]) => Reading
  readonly readWhole: (body: Json) => Reading
}

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of our own, read by tests alone
type Json = any

const responsesOptions = { tools: new Map(), encryptedContent: false, echo: {} }

/** The events of a stream, parsed; comments and the terminator left out. */
export function eventsOf(text: string): Json[] {
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line): Json => JSON.parse(line.slice('data: '.length)))
}

export const API_FORMATS: Readonly<Record<string, ReadableApi>> = {
  chat: {
    format: chatFormat(true),
    readStream: readChunks,
    readWhole: ({ choices: [{ message }] }) => ({
      reasoning: message.reasoning ?? '',
      text: (message.content ?? '') + (message.refusal ?? ''),
      calls: (message.tool_calls ?? []).map((call: Json) => ({ id: call.id, ...call.function })),
    }),
  },
  responses: {
    format: responsesFormat(responsesOptions),
    readStream: readResponseEvents,
    readWhole: readResponse,
  },
  messages: {
    format: messagesFormat({ promptEstimate: 7, stopSequences: ['END', '"ü"'] }),
    readStream: readMessageEvents,
    readWhole: ({ content }) => readBlocks(content),
  },
}

export const BROKEN_OFF = new ApiError('bad_gateway', 'The provider broke off its answer.')

/** What the answers here are billed by. */
export const BOUND: BillingBound = {
  promptEstimate: 7,
  promptTokens: 1_000_000,
  completionTokens: 1_000_000,
}

/** The text that a format has for provider bytes that come in these reads, written in the worker. */
export function writtenHere(
  format: AnswerFormat,
  reads: readonly Uint8Array[],
  options: AnswerHead & { readonly includeReasoning: boolean },
): string {
  const last = format.lastEvents(options)
  const stream = new AnswerStream(options, format.chunkWriter(options), last)
  let text = ''
  try {
    for (const read of reads) text += fromUtf8(stream.push(read))
    text += fromUtf8(stream.end())
    const { usage: billed } = billedUsage(stream, BOUND)
    text += fromUtf8(stream.finish(billed))
    return text + fromUtf8(stream.close(SERVICE, billed))
  } catch (error) {
    if (!(error instanceof BrokenStream)) throw error
    text += fromUtf8(error.output)
    return text + last.fail(stream.tail, BROKEN_OFF)
  }
}

const nothing = (): Reading => ({ reasoning: '', text: '', calls: [] })

function readChunks(chunks: readonly Json[]): Reading {
  const reading = nothing()
  const calls = new Map<number, Reading['calls'][number]>()
  for (const chunk of chunks) {
    const delta = chunk.choices?.[0]?.delta ?? {}
    reading.reasoning += delta.reasoning ?? ''
    reading.text += (delta.content ?? '') + (delta.refusal ?? '')
    for (const { index, id, function: called } of delta.tool_calls ?? []) {
      const call = calls.get(index) ?? { id, name: '', arguments: '' }
      calls.set(index, call)
      call.name += called.name ?? ''
      call.arguments += called.arguments
    }
  }
  reading.calls.push(...calls.values())
  return reading
}

/** Deltas put together; what `done` events and the last event say must be the same. */
function readResponseEvents(events: readonly Json[]): Reading {
  const output: Json[] = []
  for (const event of events) {
    if (event.type === 'response.output_item.added')
      output[event.output_index] = { ...event.item, written: '' }
    if (event.type.endsWith('.delta')) output[event.output_index].written += event.delta
    if (event.type === 'response.output_item.done') {
      const { written } = output[event.output_index]
      const { item } = event
      const text =
        item.arguments ??
        item.summary?.[0].text ??
        item.content?.[0].text ??
        item.content?.[0].refusal
      if (text !== written) throw new Error('an item differs from its deltas')
      output[event.output_index] = item
    }
  }
  const last = events.at(-1)
  if (last?.response?.output && last.type !== 'response.failed') {
    const same = JSON.stringify(last.response.output) === JSON.stringify(output)
    if (!same) throw new Error('the last event differs from the items')
  }
  const whole = output.filter((item) => item.written === undefined)
  const cut = output.filter((item) => item.written !== undefined)
  const reading = readResponse({ output: whole })
  for (const { type, written, call_id: id, name } of cut) {
    if (type === 'reasoning') reading.reasoning += written
    else if (type === 'message') reading.text += written
    else reading.calls.push({ id, name, arguments: written })
  }
  return reading
}

function readResponse({ output }: Json): Reading {
  const reading = nothing()
  for (const item of output) {
    if (item.type === 'reasoning') reading.reasoning += item.summary[0].text
    if (item.type === 'message') reading.text += item.content[0].text ?? item.content[0].refusal
    if (item.type === 'function_call') {
      reading.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments })
    }
  }
  return reading
}

function readMessageEvents(events: readonly Json[]): Reading {
  const blocks: Json[] = []
  let open: number | undefined
  for (const event of events) {
    if (event.type === 'content_block_start') {
      if (open !== undefined || event.index !== blocks.length) throw new Error('blocks overlap')
      open = event.index
      blocks.push({ ...event.content_block, json: '' })
    }
    if (event.type === 'content_block_delta') {
      if (event.index !== open) throw new Error('a delta of a block that is not open')
      const block = blocks[event.index]
      const { delta } = event
      block.text = (block.text ?? '') + (delta.text ?? '')
      block.thinking = (block.thinking ?? '') + (delta.thinking ?? '')
      block.json += delta.partial_json ?? ''
    }
    if (event.type === 'content_block_stop') open = undefined
  }
  return readBlocks(blocks)
}

function readBlocks(blocks: readonly Json[]): Reading {
  const reading = nothing()
  for (const block of blocks) {
    if (block.type === 'thinking') reading.reasoning += block.thinking
    if (block.type === 'text') reading.text += block.text
    if (block.type === 'tool_use') {
      const text = block.json ?? JSON.stringify(block.input)
      reading.calls.push({ id: block.id, name: block.name, arguments: text })
    }
  }
  return reading
}
