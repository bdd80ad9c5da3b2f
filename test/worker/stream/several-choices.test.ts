import { describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { OPTIONS, createChatStream } from '../../support/golden-streams.ts'

function event(choice: object, more: object = {}): string {
  return `data: ${JSON.stringify({ id: 'p', choices: [choice], ...more })}\n\n`
}

describe('text of several choices', () => {
  const TOKENS = 300
  /** A token of three bytes for each of eight choices, over and over, with what the provider counts on each chunk. */
  const chunks = (counted: (token: number, index: number) => number) =>
    Array.from({ length: TOKENS * 8 }, (_, position) => {
      const [token, index] = [Math.floor(position / 8) + 1, position % 8]
      const usage = { prompt_tokens: 7, completion_tokens: counted(token, index) }
      return event({ index, delta: { content: 'abc' } }, { usage })
    })
  const billed = (...events: readonly string[]) => {
    const stream = createChatStream(OPTIONS)
    for (const text of events) stream.push(utf8(text))
    const { usage, uncountedTextBytes } = stream
    return (usage?.completionTokens ?? 0) + uncountedTextBytes / 3
  }
  const ofChoice = (token: number) => token
  const ofAll = (token: number, index: number) => (token - 1) * 8 + index + 1

  test('is covered by counts of one choice as far as they go', () => {
    expect(billed(...chunks(ofChoice))).toBe(TOKENS * 8)
  })

  test('is covered by counts of all choices', () => {
    expect(billed(...chunks(ofAll))).toBe(TOKENS * 8)
  })

  test('is covered by the total, on the last choice that ends or on a chunk without one', () => {
    const total = { prompt_tokens: 7, completion_tokens: 5 }
    const texts = [0, 1].map((index) => event({ index, delta: { content: 'a long text' } }))
    const ends = (usage: object) => [
      event({ index: 0, delta: {}, finish_reason: 'stop' }),
      event({ index: 1, delta: {}, finish_reason: 'stop' }, usage),
    ]
    expect(billed(...texts, ...ends({ usage: total }))).toBe(5)
    expect(
      billed(...texts, ...ends({}), `data: {"choices":[],"usage":${JSON.stringify(total)}}\n\n`),
    ).toBe(5)
  })

  test('is not covered by the count in one of them', () => {
    const usage = { prompt_tokens: 7, completion_tokens: 2 }
    const texts = [0, 1].map((index) =>
      event({ index, delta: { content: 'abcdef' }, finish_reason: 'stop', usage }),
    )
    expect(billed(...texts)).toBe(4)
  })
})
