import { describe, expect, test } from 'vitest'
import { connectFailureKind } from '../../../src/enclave/outbound/connect-failure.ts'

const failed = (code: string, syscall = 'connect') =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall })

describe('a connection that was not established', () => {
  test.each(['EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])(
    'for %s says nothing of its peer: this machine has nothing left for it',
    (code) => {
      expect(connectFailureKind(failed(code))).toBe('exhausted')
    },
  )

  test.each(['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])(
    'for %s is the failure of its peer',
    (code) => {
      expect(connectFailureKind(failed(code))).toBe('unreachable')
    },
  )

  test('because its name is unknown is the failure of its peer', () => {
    expect(connectFailureKind(failed('ENOTFOUND', 'getaddrinfo'))).toBe('unreachable')
  })

  test.each([
    ['exhausted', ['EADDRNOTAVAIL', 'EMFILE']],
    ['exhausted', ['ENETUNREACH', 'EADDRNOTAVAIL']],
    ['unreachable', ['EADDRNOTAVAIL', 'ECONNREFUSED']],
    ['unreachable', ['ENETUNREACH', 'ENETUNREACH']],
  ])('to one of several addresses is %s for %j', (kind, codes) => {
    const all = new AggregateError(codes.map((code) => failed(code)))
    expect(connectFailureKind(Object.assign(all, { code: codes[0] }))).toBe(kind)
  })
})
