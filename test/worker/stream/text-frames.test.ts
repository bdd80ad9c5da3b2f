import { describe, expect, test } from 'vitest'
import { fromUtf8, utf8 } from '../../../src/protocol/bytes.ts'
import { createChatStream } from '../../support/golden-streams.ts'
import { TextFrames } from '../../../src/worker/stream/text-frames.ts'

const frame = (content: string, more: object = {}) =>
  JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { content } }], ...more })

function taught(...lessons: readonly (readonly [data: string, text: string])[]): TextFrames {
  const frames = new TextFrames()
  for (const [data, text] of lessons) frames.learn(data, text)
  return frames
}

describe('frames that repeat one another', () => {
  test.each(['b', ' token', '€ and 🙂', 'a: {b, [c]}', 'probe'])('give the text %j', (text) => {
    expect(taught([frame('a'), 'a']).read(frame(text))).toBe(text)
  })

  test.each([
    ['with another text in their JSON form', frame('say "no"\\')],
    ['with a line end', frame('a\n')],
    ['with an escape', frame('b').replace('"b"', '"\\u0062"')],
    ['with a control character that JSON forbids', frame('b').replace('"b"', '"\t"')],
    ['without text', frame('')],
    ['with one more member', frame('b', { usage: {} })],
    ['with a finish reason', frame('b').replace('"delta"', '"finish_reason":"stop","delta"')],
    ['cut short', frame('b').slice(0, -1)],
    ['of half a frame', frame('').slice(0, -9)],
    ['whose ends overlap', frame('a').replace('"a"', '"')],
  ])('are not those %s', (_, data) => {
    expect(taught([frame('a'), 'a']).read(data)).toBeUndefined()
  })

  test('are known by the place of the content, not by its characters', () => {
    const decoys = [
      '{"id":"a","choices":[{"delta":{"content":"a"}}]}',
      '{"x\\"content":"a","choices":[{"delta":{"content":"\\u0061"}}]}',
      '{"choices":[{"delta":{"content":"a","content":"\\u0061"}}]}',
    ]
    for (const data of decoys)
      expect(taught([data, 'a']).read(data.replace('"a"', '"b"'))).toBeUndefined()
    const separator = '{"id":"a","choices":[{"delta":{"content":":"}}]}'
    expect(taught([separator, ':']).read(separator)).toBeUndefined()
  })

  test('are looked for a few times only', () => {
    const lessons = [0, 1, 2, 3, 4].map((n) => [frame('a', { n }), 'a'] as const)
    expect(taught(...lessons.slice(0, 4)).read(frame('b', { n: 3 }))).toBe('b')
    expect(taught(...lessons).read(frame('b', { n: 4 }))).toBeUndefined()
  })
})

describe('a stream of them', () => {
  const texts = [
    'a',
    ' b',
    'ü',
    '🙂',
    '"',
    '\\',
    '\n',
    '',
    'probe',
    ':',
    ',',
    '\u2028',
    '\u007f',
    'z',
  ]

  function relayed(events: readonly string[]) {
    const shape = { id: 'chatcmpl-1', created: 1, model: 'm' }
    const flags = { includeReasoning: true, includeUsage: true }
    const stream = createChatStream({ ...shape, ...flags })
    const output = events.map((data) => fromUtf8(stream.push(utf8(`data: ${data}\n\n`))))
    return { output, bytes: stream.uncountedTextBytes, id: stream.providerResponseId }
  }

  test('goes out as if each had been parsed', () => {
    const rounds = [...texts, ...texts, ...texts]
    const alike = relayed(rounds.map((text) => frame(text)))
    expect(alike).toEqual(relayed(rounds.map((text, n) => frame(text, { n }))))
    expect(alike.output.join('')).toContain('"delta":{"content":"🙂"}')
  })

  test('ends at the finish reason: what repeats after it is dropped', () => {
    const finish = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    const { output } = relayed([frame('a'), frame('b'), finish, frame('c')])
    expect(output.slice(2)).toEqual(['', ''])
  })
})
