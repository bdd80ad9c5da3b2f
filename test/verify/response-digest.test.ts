import { describe, expect, test } from 'vitest'
import { responseDigest } from '../../src/verify/response-digest.ts'
import { utf8 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'

const events = (...data: string[]) => data.map((text) => `${text}\n\n`).join('')

const DELTA = 'data: {"id":"a","choices":[{"delta":{"content":"\\"service\\": not this, é"}}]}'
const LAST = 'data: {"id":"a","choices":[],"service":{"receipt_id":"b"}}'
const STOP = 'data: {"type":"message_stop","service":{"receipt_id":"b"}}'

describe('the digest of an answer', () => {
  test('covers a whole JSON body, the service member included', async () => {
    const body = '{"id":"a","service":{"receipt_id":"b"}}'
    expect(await responseDigest(utf8(body))).toBe(await sha256Hex(body))
  })

  test('covers a stream up to the event that carries service, comments included', async () => {
    const before = events(': keep-alive', DELTA, DELTA)
    const stream = before + events(LAST, 'data: [DONE]')
    expect(await responseDigest(utf8(stream))).toBe(await sha256Hex(before))
  })

  test('covers a whole stream where no event carries service', async () => {
    const stream = events(DELTA, 'data: [DONE]')
    expect(await responseDigest(utf8(stream))).toBe(await sha256Hex(stream))
  })

  test('covers a whole text that only quotes an event with service', async () => {
    const text = `Of the stream I read:\n\n${LAST}\n\n`
    expect(await responseDigest(utf8(text))).toBe(await sha256Hex(text))
  })

  test('is none where the answer goes on after its last event, which is not signed', async () => {
    const forged = [events(LAST, DELTA, 'data: [DONE]'), events(LAST, 'data: [DONE]', DELTA)]
    for (const rest of forged) {
      await expect(responseDigest(utf8(events(DELTA) + rest))).rejects.toThrow(
        'malformed answer: it goes on after its last event, which no receipt is about',
      )
    }
    const ended = events(DELTA) + LAST + '\n\n'
    expect(await responseDigest(utf8(ended))).toBe(await sha256Hex(events(DELTA)))
  })

  test.each([
    ['a second event behind lone carriage returns', `${LAST}\r\n\rdata: {"more":1}\r\r\n\r\n`],
    ['a second event within lone carriage returns', `${LAST}\n\rdata: {"more":1}\n\n`],
    ['a second line of data', `${LAST}\ndata: {"more":1}\n\n`],
    ['a line of data before it', `data:\r${LAST}\n\n`],
    ['another field', `${LAST}\nmore: 1\n\n`],
  ])(
    'is none where the last event hides %s, which some readers would show',
    async (_what, last) => {
      await expect(responseDigest(utf8(events(DELTA) + last))).rejects.toThrow(
        'malformed answer: its last event has more lines than the router writes there',
      )
    },
  )

  test.each([
    ['text', { choices: [{ index: 0, delta: { content: ' not' }, finish_reason: 'stop' }] }],
    ['a call of a tool', { choices: [{ delta: { tool_calls: [{ index: 0 }] } }] }],
    ['a whole message', { choices: [{ delta: {}, message: { content: 'no' } }] }],
    ['choices of another form', { choices: { 0: { delta: { content: 'no' } } } }],
    ['a piece of a message', { type: 'content_block_delta', index: 0, delta: { text: 'no' } }],
    ['more at the end of a message', { type: 'message_stop', delta: { text: 'no' } }],
    ['a piece of a response', { type: 'response.output_text.delta', delta: 'no' }],
    ['another output', { type: 'response.completed', response: { output: [{ text: 'no' }] } }],
    ['no output', { type: 'response.incomplete', response: { output: [] } }],
    [
      'text for readers of another endpoint',
      {
        type: 'response.completed',
        response: { output: [{ text: 'yes' }] },
        choices: [{ index: 0, delta: { content: ' not' } }],
      },
    ],
    [
      'a text beside the output',
      { type: 'response.completed', response: { output: [{ text: 'yes' }], output_text: 'no' } },
    ],
    [
      'text for readers that do not tell capital letters from small ones',
      { choices: [], Choices: [{ index: 0, delta: { content: ' not' } }] },
    ],
    [
      'text for readers that take a long s for an s',
      { 'choice\u017f': [{ delta: { content: '' } }] },
    ],
    ['text in a member that no chunk has', { choices: [], candidates: [{ content: 'no' }] }],
    [
      'another output for readers that do not tell capital letters from small ones',
      { type: 'response.completed', response: { output: [{ text: 'yes' }], Output: [] } },
    ],
    [
      'a text beside the output for such readers',
      { type: 'response.completed', response: { output: [{ text: 'yes' }], OUTPUT_TEXT: 'no' } },
    ],
    [
      'another output for readers that take full-width letters for ordinary ones',
      { type: 'response.completed', response: { output: [{ text: 'yes' }], ｏｕｔｐｕｔ: [] } },
    ],
  ])('is none where the last event tells %s, which was not told before', async (_what, told) => {
    const item = { type: 'response.output_item.done', item: { text: 'yes' } }
    const last = JSON.stringify({ ...told, service: { receipt_id: 'b' } })
    const stream = events(DELTA, `data: ${JSON.stringify(item)}`, `data: ${last}`)
    await expect(responseDigest(utf8(stream))).rejects.toThrow(
      'malformed answer: its last event, which no receipt is about, tells more than the events before it',
    )
  })

  test.each([
    ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' not' } }],
    ['response.completed', { response: { output: [{ text: 'no' }] } }],
    ['message_stop', { choices: [] }],
  ])('is none where only the name of the last event is its type: %s', async (name, told) => {
    const last = JSON.stringify({ ...told, service: { receipt_id: 'b' } })
    const stream = events(DELTA, `event: ${name}\ndata: ${last}`)
    await expect(responseDigest(utf8(stream))).rejects.toThrow(
      'malformed answer: its last event, which no receipt is about, tells more than the events before it',
    )
  })

  test('is none where a stream of chat chunks ends as one of responses does, with text for its own readers', async () => {
    const told = { type: 'response.completed', response: { output: [] } }
    const choices = [{ index: 0, delta: { content: ' not' } }]
    const last = JSON.stringify({ ...told, choices, service: { receipt_id: 'b' } })
    await expect(responseDigest(utf8(events(DELTA, `data: ${last}`)))).rejects.toThrow(
      'malformed answer: its last event, which no receipt is about, tells more than the events before it',
    )
  })

  test('covers a stream whose last event repeats the tools of the request, nested as deep as a request may be', async () => {
    const tools: unknown = JSON.parse(`${'['.repeat(512)}${']'.repeat(512)}`)
    const end = { type: 'response.completed', response: { output: [], tools }, service: {} }
    const before = events('data: {"type":"response.created"}')
    const stream = before + events(`event: response.completed\ndata: ${JSON.stringify(end)}`)
    expect(await responseDigest(utf8(stream))).toBe(await sha256Hex(before))
  })

  test('is none where a member stands twice in the last event, because readers disagree on it', async () => {
    const last = 'data: {"choices":[{"delta":{"content":"no"}}],"choices":[],"service":{}}'
    await expect(responseDigest(utf8(events(DELTA, last)))).rejects.toThrow(
      'malformed answer: duplicate member name',
    )
  })

  test('is none where the last event is not UTF-8, because readers disagree on its names', async () => {
    const last = Buffer.from('data: {"choices":[],"service":{"\u00ff":1}}\n\n', 'latin1')
    const stream = Buffer.concat([Buffer.from(events(DELTA)), last])
    await expect(responseDigest(new Uint8Array(stream))).rejects.toThrow(
      'malformed answer: not UTF-8',
    )
  })

  test('covers a stream whose last event repeats the items that were told to be finished', async () => {
    const items = [{ text: 'é \ud800' }, { id: 2, name: 'call' }]
    const told = items.map((item) => ({ type: 'response.output_item.done', item }))
    const response = { output: items, status: 'completed' }
    const end = { type: 'response.completed', response, service: { receipt_id: 'b' } }
    const before = events(...told.map((one) => `data: ${JSON.stringify(one)}`))
    const stream = before + events(`data: ${JSON.stringify(end)}`)
    expect(await responseDigest(utf8(stream))).toBe(await sha256Hex(before))
  })

  test.each([
    ['with its name', `event: message_stop\n${STOP}\n\n`],
    ['in lines that end as in HTTP', `event: message_stop\r\n${STOP}\r\n\r\n`],
    ['without the blank line after it', `${LAST}\n`],
  ])('covers a stream up to its last event %s', async (_what, last) => {
    expect(await responseDigest(utf8(events(DELTA) + last))).toBe(await sha256Hex(events(DELTA)))
  })

  test('covers a stream up to the last chunk of a chat as routers write it', async () => {
    const end = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'nova/glm-5',
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
      service: { receipt_id: 'b' },
    }
    const stream = events(DELTA, `data: ${JSON.stringify(end)}`, 'data: [DONE]')
    expect(await responseDigest(utf8(stream))).toBe(await sha256Hex(events(DELTA)))
  })

  test('covers a plain text', async () => {
    expect(await responseDigest(utf8('spoken words'))).toBe(await sha256Hex('spoken words'))
  })
})
