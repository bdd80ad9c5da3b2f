import { expect, test } from 'vitest'
import { peerKeyOf } from '../../../src/client/node/peer-key.ts'
import { usualTransport } from '../../../src/client/node/usual-transport.ts'

test.each([
  [undefined, 'tls'],
  ['1.4.0', 'tls'],
  ['1.10.2', 'tls'],
  ['2.0.0', 'tls'],
  ['1.3.14', 'ehbp'],
  ['0.9.9', 'ehbp'],
  ['canary', 'ehbp'],
])('under Bun %s the usual transport is %s', (version, transport) => {
  expect(usualTransport(version)).toBe(transport)
})

test('a runtime that hides the key of a connection is distinguished from a peer that shows none', () => {
  const hiding = {
    getPeerX509Certificate: () => {
      throw new Error('not implemented')
    },
  }
  expect(() => peerKeyOf(hiding)).toThrow(
    expect.objectContaining({
      code: 'unsupported_runtime',
      message: 'this runtime hides the key of a connection: use transport "ehbp"',
    }),
  )
  expect(() => peerKeyOf({ getPeerX509Certificate: () => undefined })).toThrow(
    'the peer showed no certificate',
  )
})
