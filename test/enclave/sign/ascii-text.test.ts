import { describe, expect, it } from 'vitest'
import { AsciiText } from '../../../src/enclave/sign/ascii-text.ts'

describe('AsciiText', () => {
  it('holds its parts in order, and shows what was written since', () => {
    const text = new AsciiText(6)
    text.add('ab')
    const from = text.length
    text.add(Buffer.from('cd'))
    text.add('e')
    expect(text.since(from).toString()).toBe('cde')
    text.add('f')
    expect(text.whole().toString()).toBe('abcdef')
  })

  it('is never longer or shorter than was said', () => {
    const text = new AsciiText(2)
    text.add('a')
    expect(() => text.add('bc')).toThrow(RangeError)
    expect(() => text.add(Buffer.from('bc'))).toThrow(RangeError)
    expect(() => text.whole()).toThrow(RangeError)
  })
})
