import { describe, expect, test } from 'vitest'
import { isLoopbackHost, staysPrivate } from '../../src/protocol/loopback.ts'

describe('isLoopbackHost', () => {
  test.each(['localhost', '127.0.0.1', '127.255.255.255', '::1', '[::1]'])('takes %s', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })

  test.each([
    '127.evil.example',
    '127.0.0.1.evil.example',
    'evil.example.127.0.0.1',
    '127.0.0.256',
    '127.0.0.01',
    '127.0.0',
    '127.1',
    '1127.0.0.1',
    'localhost.evil.example',
    'nova.localhost',
    'localhost.',
    'LOCALHOST',
    '::',
    '[::]',
    '::ffff:127.0.0.1',
    '0.0.0.0',
    '',
  ])('does not take %j', (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  })
})

describe('staysPrivate', () => {
  test.each(['https://router.test', 'http://127.0.0.1:8787', 'http://[::1]', 'http://localhost'])(
    'takes %s',
    (address) => {
      expect(staysPrivate(new URL(address))).toBe(true)
    },
  )

  test.each([
    'http://router.test',
    'http://10.0.0.1',
    'ws://router.test',
    'http://127.evil.example',
  ])('does not take %s', (address) => {
    expect(staysPrivate(new URL(address))).toBe(false)
  })
})
