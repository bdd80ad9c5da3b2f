import { describe, expect, it } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { MessagesChunks } from '../../../src/worker/formats/messages-chunks.ts'
import { ResponsesChunks } from '../../../src/worker/formats/responses-chunks.ts'
import { runAtOnce } from '../../../src/worker/json/steps.ts'
import { responsesFormat } from '../../../src/worker/responses/encoder.ts'
import { AnswerChunks } from '../../../src/worker/stream/answer-chunks.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import type { ChunkWriter } from '../../../src/worker/stream/encoder.ts'
import { readProviderAnswer } from '../../../src/worker/stream/provider-answer.ts'
import { eventsOf, writtenHere } from '../../support/api-formats.ts'
import { OPTIONS } from '../../support/golden-streams.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of our own, read by tests alone
type Json = any

const HELD = { takeMemory: noMemory }

function noMemory(): never {
  throw new Error('none is left')
}

/** What a client receives of an answer whose deltas are these, and how it ended. */
function written(writer: ChunkWriter, deltas: readonly object[]) {
  const chunks = new AnswerChunks({ id: 'a', includeReasoning: true }, writer)
  const events = deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`)
  let text = ''
  try {
    for (const event of events) text += fromUtf8(chunks.push(new TextEncoder().encode(event)))
  } catch (error) {
    if (error instanceof BrokenStream) return { text: text + fromUtf8(error.output), error }
  }
  throw new Error('there was memory')
}

const LONG = 'x'.repeat(200_000)

const MI = 1024 * 1024

function responses(takeMemory: (bytes: number) => void) {
  const opening = () => ({ text: '', count: 0 })
  const items = { answerId: 'a', tools: new Map(), encryptedContent: false }
  return new ResponsesChunks({ ...items, opening, takeMemory })
}

it('text that waits behind an open tool call counts once', () => {
  let taken = 0
  const chunks = new AnswerChunks(
    { id: 'a', includeReasoning: true },
    responses((bytes) => void (taken += bytes)),
  )
  const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }
  const deltas = [
    { tool_calls: [call] },
    ...Array.from({ length: 5 }, () => ({ content: 'x'.repeat(MI) })),
  ]
  for (const delta of deltas)
    chunks.push(utf8(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`))
  chunks.push(utf8('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'))
  const usage = {
    promptTokens: 1,
    completionTokens: 1,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: undefined,
  }
  expect(fromUtf8(chunks.finish(usage))).toContain('response.output_item.done')
  expect(taken).toBeLessThan(5.2 * MI)
})

it('log probabilities that wait behind an open tool call take memory while they wait', () => {
  let taken = 0
  const writer = responses((bytes) => void (taken += bytes))
  const token = { token: 'x', logprob: -1, bytes: null, top_logprobs: [] }
  const logprobs = { content: Array.from({ length: 10_000 }, () => token), refusal: null }
  const nothing = { reasoning: undefined, content: undefined, refusal: undefined, logprobs: null }
  const call = {
    index: 0,
    id: 'c',
    type: 'function',
    function: { name: 'f', arguments: '{}' },
  } as const
  writer.open()
  writer.delta({ ...nothing, toolCalls: [call] })
  writer.delta({ ...nothing, content: 'x', logprobs, toolCalls: [] })
  expect(taken).toBeGreaterThan(MI)
})

it('of a delta that runs out of memory, the events that were written before are delivered, so that no number is missing', () => {
  const opening = () => ({ text: '', count: 0 })
  const items = { answerId: 'a', tools: new Map(), encryptedContent: false }
  const writer = new ResponsesChunks({ ...items, opening, ...HELD })
  const { text, error } = written(writer, [{ content: 'Hello' }, { reasoning: 'r', content: LONG }])
  expect(error.reason).toBe('no_memory')
  expect(text).toContain('response.reasoning_summary_text.delta')
  const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: writer.tail.events }, (_, index) => index))
})

it('of a message, too: each block whose start was counted has been started', () => {
  const writer = new MessagesChunks(OPTIONS, { promptEstimate: 1, stopSequences: [], ...HELD })
  const call = { index: 0, id: 'c', function: { name: 'f', arguments: '{' } }
  const waiting = { index: 1, id: 'd', function: { name: 'g', arguments: LONG } }
  const { text, error } = written(writer, [
    { content: 'Hello' },
    { reasoning: 'r', tool_calls: [call, waiting] },
  ])
  expect(error.reason).toBe('no_memory')
  expect(text.split('event: content_block_start')).toHaveLength(writer.tail.blocks + 1)
})

describe('of an answer that ended too early', () => {
  const call = (index: number, args: string) => ({
    tool_calls: [{ index, id: `c${index}`, function: { name: 'f', arguments: args } }],
  })

  it.each([
    ['a text', [{ content: 'a' }], ['incomplete']],
    ['a call', [{ content: 'a' }, call(0, '{"x":')], ['completed', 'incomplete']],
    ['a call without arguments yet', [call(0, '')], ['incomplete']],
    ['a call after another', [call(0, '{}'), call(1, '{"x":')], ['completed', 'incomplete']],
    ['a text after a call', [call(0, '{}'), { content: 'a' }], ['completed', 'incomplete']],
  ])('only the last item is incomplete: %s', (_, deltas, statuses) => {
    const chunks = new AnswerChunks({ id: 'a', includeReasoning: true }, responses(noMemory))
    for (const delta of deltas)
      chunks.push(utf8(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`))
    chunks.push(utf8('data: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\n'))
    chunks.finish()
    expect(chunks.tail.output).toMatchObject(statuses.map((status) => ({ status })))
  })

  const given = [call(0, '{}'), call(1, '')].flatMap(({ tool_calls: calls }) => calls)

  it.each([
    ['the first', given.slice(1)],
    ['another, which waits', given],
  ])(
    'a call has no arguments where none had come, in a stream as in a whole answer: clients would run it with an empty object (%s)',
    (_, calls) => {
      const chunks = new AnswerChunks({ id: 'a', includeReasoning: true }, responses(noMemory))
      const choice = { delta: { tool_calls: calls }, finish_reason: 'length' }
      chunks.push(utf8(`data: ${JSON.stringify({ choices: [choice] })}\n\n`))
      chunks.finish()
      const cut = { type: 'function_call', arguments: '', status: 'incomplete' }
      expect(chunks.tail.output.at(-1)).toMatchObject(cut)
      const whole = { choices: [{ message: { tool_calls: calls }, finish_reason: 'length' }] }
      const answer = runAtOnce(readProviderAnswer(whole, { id: 'a', includeReasoning: true }))
      const format = responsesFormat({ tools: new Map(), encryptedContent: false, echo: {} })
      const body: Json = format.wholeBody(answer, OPTIONS, undefined, {})
      expect(body.output.at(-1)).toMatchObject(cut)
    },
  )
})

describe('log probabilities that come without text', () => {
  const probability = (token: string) => ({ token, logprob: -1, bytes: null, top_logprobs: [] })
  const frame = (delta: object, token: string) => ({
    delta,
    logprobs: { content: [probability(token)], refusal: null },
  })
  const thought = (text: string) => frame({ reasoning: text }, text)
  const said = (text: string) => frame({ content: text }, text)
  const called = (args: string) =>
    frame({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: args } }] }, args)

  /** The items of an answer in these frames: type, text, and the tokens that have log probabilities. */
  function itemsOf(frames: readonly object[]) {
    const chunks = new AnswerChunks(
      { id: 'a', includeReasoning: true },
      responses(() => {}),
    )
    const choices = [...frames, { delta: {}, finish_reason: 'stop' }]
    for (const choice of choices)
      chunks.push(utf8(`data: ${JSON.stringify({ choices: [choice] })}\n\n`))
    chunks.finish()
    const output: readonly Json[] = chunks.tail.output
    return output.map(({ type, summary, content, arguments: args }) => {
      const [part] = summary ?? content ?? []
      const tokens = part?.logprobs?.map(({ token }: Json) => token)
      return [type, part?.text ?? args, ...(tokens === undefined ? [] : [tokens])]
    })
  }

  it.each<[string, readonly object[], readonly unknown[]]>([
    [
      'of reasoning, open no text',
      [thought('a'), thought('b'), said('c'), said('d')],
      [
        ['reasoning', 'ab'],
        ['message', 'cd', ['c', 'd']],
      ],
    ],
    [
      'of a call, open no text, and are none of the text before it',
      [said('a'), called('{"x":'), called('1}')],
      [
        ['message', 'a', ['a']],
        ['function_call', '{"x":1}'],
      ],
    ],
    [
      'of the first bytes of a character, are of the text that it begins',
      [thought('a'), frame({ content: '' }, 'b'), said('é')],
      [
        ['reasoning', 'a'],
        ['message', 'é', ['b', 'é']],
      ],
    ],
    [
      'of the first bytes of a character in reasoning, are of no text',
      [thought('a'), frame({ content: '' }, 'b'), thought('é'), said('c')],
      [
        ['reasoning', 'aé'],
        ['message', 'c', ['c']],
      ],
    ],
    [
      'of a character in a text behind a call, wait with it',
      [called('{}'), frame({ content: '' }, 'b'), said('é'), frame({ content: '' }, 'end')],
      [
        ['function_call', '{}'],
        ['message', 'é', ['b', 'é']],
      ],
    ],
    [
      'of the end of a text, are of that text',
      [said('a'), frame({ content: '' }, 'end')],
      [['message', 'a', ['a', 'end']]],
    ],
  ])('%s', (_, frames, items) => {
    expect(itemsOf(frames)).toEqual(items)
  })
})

describe('a call of a custom tool', () => {
  const tools = new Map([['sh', { kind: 'custom', name: 'sh', namespace: undefined } as const]])
  const format = responsesFormat({ tools, encryptedContent: false, echo: {} })

  it.each<[string, string | null, string]>([
    ['whose input is an argument', '{"input":"ls"}', 'ls'],
    ['without arguments has no input', '', ''],
    ['with null in place of arguments has none', null, ''],
    ['with an empty object has none', '{}', ''],
    ['with other arguments has those', '{"cmd":"ls"}', '{"cmd":"ls"}'],
    ['with text for arguments has that', 'ls', 'ls'],
  ])('%s, whole and streamed', (_, args, input) => {
    const call = { index: 0, id: 'c', type: 'function', function: { name: 'sh', arguments: args } }
    const item = { type: 'custom_tool_call', status: 'completed', call_id: 'c', name: 'sh', input }
    const end = { finish_reason: 'tool_calls' }
    const chunks = [{ delta: { tool_calls: [call] } }, { delta: {}, ...end }]
    const stream = chunks.map((one) => utf8(`data: ${JSON.stringify({ choices: [one] })}\n\n`))
    const events = eventsOf(writtenHere(format, stream, OPTIONS))
    expect(events.at(-1).response.output).toMatchObject([item])
    const done = events.find(({ type }) => type === 'response.custom_tool_call_input.done')
    expect(done).toMatchObject({ input })
    const body = { choices: [{ message: { tool_calls: [call] }, ...end }] }
    const answer = runAtOnce(readProviderAnswer(body, OPTIONS))
    expect(format.wholeBody(answer, OPTIONS, undefined, {})).toMatchObject({ output: [item] })
  })
})
