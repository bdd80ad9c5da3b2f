import { describe, expect, test } from 'vitest'
import { MalformedEvidence } from '../../src/protocol/malformed-evidence.ts'
import { readReceiptText } from '../../src/verify/receipt-text.ts'

const ID = '5f0c0b1e-0e0c-4a58-9d0f-2f6a3f7f5a55'
const FIRST = 'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'

describe('the text of a receipt', () => {
  test.each([
    [' eyJ.eyJ.c2ln\n', { id: undefined, receipt: 'eyJ.eyJ.c2ln' }],
    [`{"id": "${ID}", "receipt": "eyJ.eyJ.c2ln"}`, { id: ID, receipt: 'eyJ.eyJ.c2ln' }],
  ])('is the JWS, or the answer of the router with it: %s', (text, read) => {
    expect(readReceiptText(text)).toEqual(read)
  })

  test.each([
    ['whole', `{"choices": [], "service": {"receipt_id": "${ID}"}}`],
    ['streamed', `${FIRST}data: {"choices":[],"service":{"receipt_id":"${ID}"}}\n\n`],
    ['streamed after a comment', `: keep-alive\n\ndata: {"service":{"receipt_id":"${ID}"}}\n\n`],
  ])('is not the answer of a model, %s, which is told how to get it', (_what, text) => {
    const reason = `this is a model's answer; its receipt is what the router answers to GET /v1/receipts/${ID}`
    expect(() => readReceiptText(text)).toThrow(new MalformedEvidence('receipt file', reason))
  })

  test.each([
    ['{"service": {"receipt_id": "\\u001b[2J"}}', 'id: Invalid input'],
    ['{"id": "a"}', 'receipt: Invalid input'],
    ['{"id": "a"', 'not JSON'],
  ])('%s is no receipt either', (text, reason) => {
    expect(() => readReceiptText(text)).toThrow(`malformed receipt file: ${reason}`)
  })
})
