import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createPublicLookup, isPublicAddress } from '../../../src/enclave/outbound/public-lookup.ts'
import type { LookUpAll } from '../../../src/enclave/outbound/shared-lookup.ts'

describe('an address', () => {
  it.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:10.0.0.1',
    '::ffff:169.254.169.254',
    '64:ff9b::a00:1',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::1',
    'fc00::1',
    'fd12::1',
    'fe80::1',
    'fec0::1',
    'ff02::1',
  ])('%s is not public', (address) => {
    expect(isPublicAddress({ address, family: address.includes(':') ? 6 : 4 })).toBe(false)
  })

  it.each([
    '1.1.1.1',
    '100.128.0.1',
    '172.32.0.1',
    '192.0.1.1',
    '2606:4700::1111',
    '::ffff:1.1.1.1',
    // As the name server of a network of IPv6 alone gives an address of IPv4.
    '64:ff9b::101:101',
  ])('%s is public', (address) => {
    expect(isPublicAddress({ address, family: address.includes(':') ? 6 : 4 })).toBe(true)
  })
})

/** A resolver that knows one name. */
function resolverOf(...addresses: readonly string[]): LookUpAll {
  const rows = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  return (_name, done) => done(null, rows)
}

function found(addresses: readonly string[], all: boolean): Promise<unknown> {
  return new Promise((resolve) => {
    createPublicLookup(resolverOf(...addresses))('name', { all }, (error, address, family) =>
      resolve(error === null ? [address, family] : error.message),
    )
  })
}

describe('a name', () => {
  it('keeps its public addresses alone', async () => {
    const addresses = ['10.0.0.1', '1.1.1.1', '::1', '2606:4700::1111']
    expect(await found(addresses, true)).toEqual([
      [
        { address: '1.1.1.1', family: 4 },
        { address: '2606:4700::1111', family: 6 },
      ],
      undefined,
    ])
    expect(await found(addresses, false)).toEqual(['1.1.1.1', 4])
  })

  it.each([true, false])('without a public address is not found (all: %s)', async (all) => {
    expect(await found(['10.0.0.1', '::1'], all)).toBe('no public address')
  })

  it('that leads to this machine is not connected to', async () => {
    const socket = connect({ host: 'localhost', port: 9, lookup: createPublicLookup() })
    const error = await new Promise((resolve) => socket.once('error', resolve))
    expect(error).toMatchObject({ message: 'no public address' })
  })
})
