import type { networkInterfaces } from 'node:os'
import { describe, expect, it, test } from 'vitest'
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

  describe('for EADDRNOTAVAIL', () => {
    const of = (family: 'IPv4' | 'IPv6', internal: boolean, address: string) => ({
      family,
      internal,
      address,
      ...(family === 'IPv6' ? { scopeid: 0 } : {}),
    })
    const V4 = of('IPv4', false, '192.0.2.2')
    const V6 = of('IPv6', false, '2001:db8::2')
    const LINK_LOCAL = of('IPv6', false, 'fe80::5054:ff:fe12:3456')
    const LOOPBACKS = [of('IPv4', true, '127.0.0.1'), of('IPv6', true, '::1')]
    const unavailable = (address: string) =>
      Object.assign(failed('EADDRNOTAVAIL'), { address, port: 443 })
    const on = (...own: readonly object[]) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these members are read
      return () => ({ eth0: own }) as unknown as ReturnType<typeof networkInterfaces>
    }

    it.each([
      ['unreachable', 'IPv6, of which the machine has no address', '2001:db8::1', [V4]],
      ['unreachable', 'IPv6, of which it has only its loopback', '2001:db8::1', [V4, ...LOOPBACKS]],
      ['unreachable', 'IPv4, of which it has only its loopback', '192.0.2.1', [V6, ...LOOPBACKS]],
      ['unreachable', 'its own loopback, which it does not have', '::1', [V4]],
      [
        'unreachable',
        'IPv6, of which it has only link-local ones',
        '2001:db8::1',
        [V4, LINK_LOCAL],
      ],
      ['exhausted', 'its own link, on which it has one', 'fe80::1%eth0', [V4, LINK_LOCAL]],
      ['exhausted', 'IPv6, of which it has another one', '2001:db8::1', [LINK_LOCAL, V6]],
      ['exhausted', 'IPv6, of which the machine has an address', '2001:db8::1', [V6]],
      ['exhausted', 'IPv4, of which the machine has an address', '192.0.2.1', [V4, V6]],
      ['exhausted', 'its own loopback, which it has', '127.0.0.1', LOOPBACKS],
    ])('is %s where the peer is one of %s', (kind, _which, address, own) => {
      expect(connectFailureKind(unavailable(address), on(...own))).toBe(kind)
    })

    it('goes by the ports of the family that the machine has, where a name has addresses of both', () => {
      const both = new AggregateError([unavailable('2001:db8::1'), unavailable('192.0.2.1')])
      expect(connectFailureKind(both, on(V4))).toBe('exhausted')
    })

    it('is exhausted where not even the addresses of the machine can be read', () => {
      const unreadable = () => {
        throw failed('EMFILE', 'uv_interface_addresses')
      }
      expect(connectFailureKind(unavailable('2001:db8::1'), unreadable)).toBe('exhausted')
    })
  })
})
