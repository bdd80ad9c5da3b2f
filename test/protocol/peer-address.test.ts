import { expect, it } from 'vitest'
import { peerAddress } from '../../src/protocol/peer-address.ts'

it.each([
  ['https://nova.example/v1', { isTls: true, host: 'nova.example', port: 443 }],
  ['https://nova.example:8443/v1', { isTls: true, host: 'nova.example', port: 8443 }],
  ['http://nova.example/v1', { isTls: false, host: 'nova.example', port: 80 }],
  ['http://127.0.0.1:8000', { isTls: false, host: '127.0.0.1', port: 8000 }],
  ['http://[::1]:8000/v1', { isTls: false, host: '::1', port: 8000 }],
])('the peer of %s is %o', (url, peer) => {
  expect(peerAddress(url)).toEqual(peer)
})
