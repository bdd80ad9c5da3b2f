import { createHmac, randomBytes } from 'node:crypto'
import { isIPv4 } from 'node:net'

/** Maps each source of connections to a loopback address, always the same one. */
export type SourceAddress = (remoteAddress: string) => string

/**
 * The worker sees every relayed connection come from this machine. To let it distinguish clients, each client gets an
 * address in 127.0.0.0/8 from a keyed hash of its own address: 24 bits, which nobody can choose or trace back without
 * the key. An IPv6 client counts as its /64, because it can use any address in it.
 */
export function makeSourceAddress(key: Uint8Array = randomBytes(32)): SourceAddress {
  return (remoteAddress) => {
    const digest = createHmac('sha256', key).update(sourceOf(remoteAddress)).digest()
    const [a = 0, b = 0, c = 0] = digest
    // The first and the last address of the network are not host addresses.
    return `127.${a}.${b}.${Math.min(Math.max(c, 1), 254)}`
  }
}

const MAPPED_IPV4 = /^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i

/** What counts as one source: an IPv4 address, or the /64 of an IPv6 address. */
export function sourceOf(remoteAddress: string): string {
  const plain = remoteAddress.replace(MAPPED_IPV4, '')
  if (isIPv4(plain)) return plain
  const [head = '', tail] = (plain.split('%')[0] ?? '').split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  const groups = [...before, ...Array<string>(missing).fill('0'), ...after]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
