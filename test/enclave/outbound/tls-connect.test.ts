import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { peerSpkiSha256 } from '../../../src/enclave/outbound/peer-key.ts'
import { connectTls, hasPublicName, tlsAddress } from '../../../src/enclave/outbound/tls-connect.ts'
import { startRecordingProvider, type RecordingProvider } from '../../support/recording-provider.ts'

let provider: RecordingProvider

beforeAll(async () => {
  provider = await startRecordingProvider((_request, response) => void response.end())
})
afterAll(() => provider.close())

const target = () => ({ host: '127.0.0.1', port: provider.port, connectMs: 2000 })

describe('a connection', () => {
  it('shows the key of the certificate as the certificate has it, over TLS 1.3', async () => {
    const socket = await connectTls({ ...target(), webPki: false })
    expect(await peerSpkiSha256(socket)).toBe(provider.tls.spkiSha256)
    expect(socket.getProtocol()).toBe('TLSv1.3')
    expect(socket.isSessionReused()).toBe(false)
    socket.destroy()
  })

  it('is refused where a public certificate is demanded and there is none', async () => {
    await expect(connectTls({ ...target(), webPki: true })).rejects.toMatchObject({
      kind: 'unreachable',
      message: 'connect: unreachable',
    })
  })
})

describe('an address', () => {
  it.each([
    ['https://a.example/v1', { host: 'a.example', port: 443 }],
    ['https://[::1]:8443/v1', { host: '::1', port: 8443 }],
    ['http://a.example/v1', undefined],
  ])('is read from %s', (url, address) => {
    expect(tlsAddress(url)).toEqual(address)
  })

  it.each([
    ['a.example', true],
    ['localhost', false],
    ['nova.localhost', false],
    ['127.0.0.1', false],
    ['::1', false],
  ])('%s has a public name: %s', (host, expected) => {
    expect(hasPublicName(host)).toBe(expected)
  })
})
