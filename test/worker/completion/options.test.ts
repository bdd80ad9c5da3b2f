import { describe, expect, it } from 'vitest'
import { readChatOptions } from '../../../src/worker/completion/options.ts'
import { refusalOf } from '../../support/refusal.ts'

const timeout = (value: string) => new Headers({ 'X-Service-Timeout-Seconds': value })

const DEFAULTS = { receipt: true, timeoutMs: 180_000, hurried: false }

describe('readChatOptions', () => {
  it('keeps a receipt and gives 180 seconds where nothing is said', () => {
    expect(readChatOptions(new Headers(), false)).toEqual(DEFAULTS)
    expect(readChatOptions(new Headers(), true)).toEqual(DEFAULTS)
  })

  it.each([
    ['false', false],
    ['False', false],
    ['FALSE', false],
    ['true', true],
    ['', true],
    ['0', true],
    ['no', true],
    // As it arrives where it is sent more than once.
    ['false, false', false],
    ['false,False', false],
    ['false, true', true],
    ['true, false', true],
  ])('reads X-Service-Receipt "%s" as %s', (value, receipt) => {
    const headers = new Headers({ 'x-service-receipt': value })
    expect(readChatOptions(headers, true).receipt).toBe(receipt)
  })

  it.each([
    ['1', 1_000],
    ['30', 30_000],
    ['030', 30_000],
    ['180', 180_000],
    ['600', 600_000],
    ['601', 600_000],
    ['99999999999999999999999', 600_000],
  ])('reads X-Service-Timeout-Seconds "%s" as %d ms', (value, timeoutMs) => {
    expect(readChatOptions(timeout(value), false).timeoutMs).toBe(timeoutMs)
  })

  it.each([
    ['1', true],
    ['179', true],
    ['180', false],
    ['600', false],
  ])('takes X-Service-Timeout-Seconds "%s" for a hurry: %s', (value, hurried) => {
    expect(readChatOptions(timeout(value), false).hurried).toBe(hurried)
  })

  it.each([
    '',
    '0',
    '000',
    '-1',
    '+1',
    '1.5',
    '1.0',
    '1e2',
    '0x10',
    'ten',
    '10s',
    '10, 20',
    'Infinity',
    '１',
  ])('refuses X-Service-Timeout-Seconds "%s"', (value) => {
    // Headers take bytes only; a fullwidth digit arrives as its UTF-8 bytes.
    const headers = timeout(String.fromCharCode(...new TextEncoder().encode(value)))
    expect(refusalOf(() => readChatOptions(headers, false))).toEqual({
      code: 'invalid_timeout_override',
      message: 'X-Service-Timeout-Seconds must be a positive whole number.',
      param: 'X-Service-Timeout-Seconds',
    })
  })

  it.each(['30', '0', ''])('refuses X-Service-Timeout-Seconds "%s" on a stream', (value) => {
    expect(refusalOf(() => readChatOptions(timeout(value), true))).toEqual({
      code: 'invalid_timeout_override',
      message:
        'X-Service-Timeout-Seconds applies to synchronous requests only; leave it out with "stream": true.',
      param: 'X-Service-Timeout-Seconds',
    })
  })
})
