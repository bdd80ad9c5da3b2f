import { describe, expect, test } from 'vitest'
import { responseDigest } from '../../src/verify/response-digest.ts'
import { utf8 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'

const events = (...data: string[]) => data.map((text) => `${text}\n\n`).join('')

const DELTA = 'data: {"id":"a","choices":[{"delta":{"content":"\\"service\\": not this, é"}}]}'
const LAST = 'data: {"id":"a","choices":[],"service":{"receipt_id":"b"}}'

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
    ['with its name', `event: message_stop\n${LAST}\n\n`],
    ['in lines that end as in HTTP', `event: message_stop\r\n${LAST}\r\n\r\n`],
    ['without the blank line after it', `${LAST}\n`],
  ])('covers a stream up to its last event %s', async (_what, last) => {
    expect(await responseDigest(utf8(events(DELTA) + last))).toBe(await sha256Hex(events(DELTA)))
  })

  test('covers a plain text', async () => {
    expect(await responseDigest(utf8('spoken words'))).toBe(await sha256Hex('spoken words'))
  })
})
