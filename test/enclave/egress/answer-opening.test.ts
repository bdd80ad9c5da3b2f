import { describe, expect, it } from 'vitest'
import { AnswerOpening } from '../../../src/enclave/egress/answer-opening.ts'

function isOver(...chunks: readonly string[]): boolean {
  const opening = new AnswerOpening()
  for (const chunk of chunks) opening.read(Buffer.from(chunk))
  return opening.over
}

const event = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`

describe('the opening of an answer', () => {
  it.each([
    ['content', event({ role: 'assistant', content: 'a' })],
    ['reasoning', event({ reasoning: 'a' })],
    ['reasoning under its older name', event({ reasoning_content: 'a' })],
    [
      'content behind a role in the same chunk',
      event({ role: 'assistant' }) + event({ content: 'a' }),
    ],
    ['content with CRLF line ends', event({ content: 'a' }).replaceAll('\n', '\r\n')],
    ['content without a position', 'data:{"choices":[{"delta":{"content":"a"}}]}\n\n'],
  ])('is over with the first %s', (_, chunk) => {
    expect(isOver(event({ role: 'assistant', content: '' }))).toBe(false)
    expect(isOver(event({ role: 'assistant', content: '' }), chunk)).toBe(true)
  })

  it.each([
    ['comments', ': still thinking\n\n'.repeat(200)],
    ['empty texts', event({ content: '', reasoning: '', reasoning_content: '' })],
    ['a second alternative', 'data: {"choices":[{"index":1,"delta":{"content":"a"}}]}\n\n'],
    ['no alternatives', 'data: {"choices":[]}\n\n'],
    ['a part of an event', event({ content: 'a long text' }).slice(0, -9)],
    ['what is no JSON', 'data: content\n\ndata: [DONE]\n\ndata: null\n\ndata\n\n'],
    ['a field of another name', event({ content: 'a' }).replace('data', 'event')],
  ])('is not over with %s', (_, chunk) => {
    expect(isOver(chunk)).toBe(false)
  })

  it('is over after more events than the worker accepts without output', () => {
    const events = (count: number) => event({ tool_calls: [{}] }).repeat(count)
    expect(isOver(events(64))).toBe(false)
    expect(isOver(events(64), events(1))).toBe(true)
  })
})
