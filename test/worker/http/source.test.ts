import { describe, expect, it } from 'vitest'
import { sourceOf } from '../../../src/worker/http/source.ts'

describe('whom a request comes from', () => {
  it.each([
    ['127.3.4.5:40123', '127.3.4.5'],
    ['[2001:db8::1]:443', '[2001:db8::1]'],
  ])('is the peer %s without its port', (clientIp, source) => {
    expect(sourceOf({ headers: new Headers(), cf: { clientIp } })).toBe(source)
  })

  it('is not what the client claims where the platform reports the peer', () => {
    const headers = new Headers({ 'cf-connecting-ip': '9.9.9.9', 'x-forwarded-for': '9.9.9.9' })
    expect(sourceOf({ headers, cf: { clientIp: '127.3.4.5:1' } })).toBe('127.3.4.5')
  })

  it('is what a Worker host says of the client', () => {
    const headers = new Headers({ 'cf-connecting-ip': '198.51.100.7' })
    expect(sourceOf({ headers, cf: { colo: 'FRA' } })).toBe('198.51.100.7')
    expect(sourceOf({ headers })).toBe('198.51.100.7')
  })

  it('is one for all where no header names it', () => {
    expect(sourceOf({ headers: new Headers() })).toBe('unknown')
    expect(sourceOf({ headers: new Headers(), cf: { clientIp: 7 } })).toBe('unknown')
  })

  it('is never long', () => {
    const headers = new Headers({ 'cf-connecting-ip': 'x'.repeat(5_000) })
    expect(sourceOf({ headers })).toHaveLength(45)
  })
})
