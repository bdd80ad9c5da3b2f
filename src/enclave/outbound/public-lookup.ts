import type { LookupAddress } from 'node:dns'
import { BlockList, type LookupFunction } from 'node:net'
import { lookupBy, lookUpShared, type LookUpAll } from './shared-lookup.ts'

/** Networks that are not part of the public Internet (IANA's registries of special-purpose addresses, RFC 6890). */
const NOT_PUBLIC = {
  ipv4: [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['224.0.0.0', 3],
  ],
  ipv6: [
    ['::', 127],
    // Local-use translation to IPv4 addresses by the operator's own network (RFC 8215).
    ['64:ff9b:1::', 48],
    ['fc00::', 7],
    ['fe80::', 10],
    ['fec0::', 10],
    ['ff00::', 8],
  ],
} as const

/**
 * Translation to IPv4 addresses (RFC 6052): in an IPv6-only network, the name server returns addresses with this prefix
 * for hosts that have only IPv4.
 */
const TRANSLATED = { prefix: '64:ff9b::', bits: 96 }

const notPublic = new BlockList()
for (const [network, prefix] of NOT_PUBLIC.ipv4) {
  notPublic.addSubnet(network, prefix, 'ipv4')
  notPublic.addSubnet(`${TRANSLATED.prefix}${network}`, TRANSLATED.bits + prefix, 'ipv6')
}
for (const [network, prefix] of NOT_PUBLIC.ipv6) notPublic.addSubnet(network, prefix, 'ipv6')

export function isPublicAddress({ address, family }: LookupAddress): boolean {
  return !notPublic.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/**
 * A lookup that drops addresses that are not public, so that whoever controls the name cannot direct a connection into
 * the operator's own network.
 * @param lookUp finds all addresses of a name
 */
export function createPublicLookup(lookUp: LookUpAll = lookUpShared): LookupFunction {
  return lookupBy((hostname, done) => {
    lookUp(hostname, (error, addresses) => {
      const open = addresses.filter(isPublicAddress)
      done(error ?? (open.length > 0 ? null : new Error('no public address')), open)
    })
  })
}
