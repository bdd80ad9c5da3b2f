import { expect, test } from 'vitest'
import { copyBytes } from '../../../src/protocol/bytes.ts'
import { MAX_QUOTE_BYTES, quoteReportData } from '../../../src/verify/tdx/quote-layout.ts'
import { readRealFile } from '../../support/real-files.ts'

test('a quote is read up to the largest size, and refused unread above', () => {
  const quote = copyBytes(readRealFile('tdx/tdx-quote.bin'))
  const padded = (length: number) => {
    const bytes = new Uint8Array(length)
    bytes.set(quote)
    return bytes
  }
  expect(quoteReportData(padded(MAX_QUOTE_BYTES))).toEqual(quoteReportData(quote))
  expect(() => quoteReportData(padded(MAX_QUOTE_BYTES + 1))).toThrow(
    expect.objectContaining({
      code: 'too_large',
      message: 'a document is larger than any honest one',
    }),
  )
})
