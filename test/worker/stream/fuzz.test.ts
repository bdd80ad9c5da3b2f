import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { BrokenStream } from '../../../src/worker/stream/broken-stream.ts'
import {
  OPTIONS,
  chunksOf,
  goldenStreams,
  providerBytes,
  rebuildCompletion,
  replay,
  type ChatStreamOptions,
} from '../../support/golden-streams.ts'
import { checkShape, FINISH_REASON } from '../../support/stream-shape.ts'
import { cpuMs } from '../../support/cpu-time.ts'

const FINISH_REASONS = ['stop', 'length', 'content_filter', 'tool_calls', 'abort']
const GOLDEN = goldenStreams().map(providerBytes)
const golden = fc.constantFrom(...GOLDEN)

const options: fc.Arbitrary<ChatStreamOptions> = fc
  .record({
    includeReasoning: fc.boolean(),
    includeUsage: fc.boolean(),
  })
  .map((some) => ({ ...OPTIONS, ...some }))

/** Anything thrown but `BrokenStream` fails the test inside `replay`. */
function survives(bytes: Uint8Array, cuts: readonly number[], some: ChatStreamOptions): void {
  const whole = replay([bytes], some)
  const places = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b)
  const reads = [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length))
  const inReads = replay(reads, some)
  expect([inReads.text, inReads.outcome]).toEqual([whole.text, whole.outcome])
  checkShape(whole.text, 'finish_reason' in whole.outcome)
}

test('random bytes break nothing', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), fc.array(fc.nat()), options, survives), {
    numRuns: 500,
  })
})

test('golden streams with bytes changed, cut out or repeated break nothing', () => {
  const change = fc.tuple(fc.nat(), fc.nat({ max: 40 }), fc.uint8Array({ maxLength: 8 }))
  const mutated = fc
    .tuple(golden, fc.array(change, { maxLength: 4 }))
    .map(([bytes, changes]) =>
      changes.reduce(
        (sofar, [at, gone, put]) => spliced(sofar, at % (sofar.length + 1), gone, put),
        bytes,
      ),
    )
  fc.assert(fc.property(mutated, fc.array(fc.nat()), options, survives), { numRuns: 1000 })
})

test('golden streams with any JSON value in place of one of theirs break nothing', () => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(null, '', 0, -1, 429, [], {}, '429', 2 ** 53, [null]),
  )
  const mutated = fc
    .tuple(golden, fc.array(fc.tuple(fc.nat(), odd), { maxLength: 3 }))
    .map(([bytes, changes]) =>
      changes.reduce((sofar, [at, value]) => replaced(sofar, at, JSON.stringify(value)), bytes),
    )
  fc.assert(fc.property(mutated, fc.array(fc.nat()), options, survives), { numRuns: 1000 })
})

test('events of golden streams in any order break nothing', () => {
  const events = GOLDEN.flatMap((bytes) => new TextDecoder().decode(bytes).split(/(?<=\n\n)/))
  const mixed = fc
    .array(fc.constantFrom(...events), { maxLength: 30 })
    .map((some) => utf8(some.join('')))
  fc.assert(fc.property(mixed, fc.array(fc.nat()), options, survives), { numRuns: 500 })
})

test('whole answers made of any JSON break nothing', () => {
  const odd = fc.oneof(fc.jsonValue(), fc.constant(undefined))
  const message = fc.record({
    content: fc.oneof(fc.string(), odd),
    reasoning: odd,
    refusal: odd,
    tool_calls: fc.oneof(
      odd,
      fc.array(fc.record({ id: odd, function: fc.record({ name: fc.string(), arguments: odd }) })),
    ),
  })
  const choice = fc.record({
    index: odd,
    message: fc.oneof(message, odd),
    logprobs: fc.oneof(
      odd,
      fc.record({ content: fc.array(fc.record({ token: fc.string(), logprob: odd })) }),
    ),
    finish_reason: fc.oneof(fc.constantFrom(...FINISH_REASONS), odd),
  })
  const usage = fc.record({
    prompt_tokens: odd,
    completion_tokens: odd,
    prompt_tokens_details: odd,
  })
  const answer = fc.record({
    id: odd,
    choices: fc.oneof(fc.array(choice), odd),
    usage: fc.oneof(usage, odd),
  })
  fc.assert(fc.property(fc.oneof(answer, odd), options, checkWhole), { numRuns: 1000 })
})

function checkWhole(answer: unknown, some: ChatStreamOptions): void {
  let text: string
  try {
    text = rebuildCompletion(utf8(JSON.stringify(answer) ?? ''), some).json({})
  } catch (error) {
    if (error instanceof BrokenStream) return
    throw error
  }
  const { id, choices } = JSON.parse(text)
  expect(id).toBe(OPTIONS.id)
  for (const { index, message, logprobs, finish_reason } of choices) {
    expect(Number.isInteger(index)).toBe(true)
    expect(message.role).toBe('assistant')
    expect(message.content === null || typeof message.content === 'string').toBe(true)
    expect(logprobs).not.toBeUndefined()
    expect(finish_reason).toMatch(FINISH_REASON)
    for (const call of message.tool_calls ?? []) {
      expect([typeof call.id, call.type, typeof call.function.name]).toEqual([
        'string',
        'function',
        'string',
      ])
      expect(typeof call.function.arguments).toBe('string')
    }
  }
}

test.each([
  ['nesting', 'malformed', `data: ${'['.repeat(2_000_000)}\n\n`],
  [
    'nested arguments',
    'malformed',
    `data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}}}]}}]}\n\n`,
  ],
  [
    'nested thinking',
    'malformed',
    `data: {"choices":[{"delta":{"content":${'[{"type":"thinking","thinking":'.repeat(100_000)}1${'}]'.repeat(100_000)}}}]}\n\n`,
  ],
])('deep %s ends the stream', (_, reason, text) => {
  expect(replay([utf8(text)]).outcome).toMatchObject({ broken: reason })
})

test('a delta with 100,000 tool calls takes time in proportion', () => {
  const calls = Array.from({ length: 100_000 }, (_, i) => `{"id":"c${i}","function":{"name":"f"}}`)
  const started = cpuMs()
  const { stream, text } = replay([
    utf8(`data: {"choices":[{"delta":{"tool_calls":[${calls.join()}]}}]}\n\n`),
  ])
  expect(stream.committed).toBe(true)
  expect(chunksOf(text)).toHaveLength(2)
  expect(cpuMs() - started).toBeLessThan(5_000)
})

function spliced(
  bytes: Uint8Array,
  at: number,
  gone: number,
  put: Uint8Array,
): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...bytes.subarray(0, at), ...put, ...bytes.subarray(at + gone)])
}

/** The stream with one JSON value, chosen by number, replaced by other JSON text. */
function replaced(bytes: Uint8Array, choice: number, json: string): Uint8Array<ArrayBuffer> {
  const text = new TextDecoder().decode(bytes)
  const values = [
    ...text.matchAll(/(?<=":)("(?:[^"\\]|\\.)*"|-?\d[\d.]*|null|true|false|\[\]|\{\})/g),
  ]
  const value = values[choice % Math.max(1, values.length)]
  if (value === undefined) return utf8(text)
  return utf8(text.slice(0, value.index) + json + text.slice(value.index + value[0].length))
}

test('the shape check itself notices a bad stream', () => {
  const bad = 'data: {"id":"x","choices":[]}\n\n'
  expect(() => checkShape(bad, false)).toThrow('expected')
  expect(fromUtf8(utf8(bad))).toBe(bad)
})
