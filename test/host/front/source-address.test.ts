import { describe, expect, test } from 'vitest'
import { makeSourceAddress, sourceOf } from '../../../src/host/front/source-address.ts'

describe('the source of a connection', () => {
  test.each([
    ['198.51.100.7', '198.51.100.7'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2:ffff::9', '2001:db8:1:2'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
  ])('of %s is %s', (address, source) => {
    expect(sourceOf(address)).toBe(source)
  })
})

describe('the address on loopback that stands for a source', () => {
  const key = new Uint8Array(32).fill(1)

  test('is the same every time, and another one for another source', () => {
    const addressOf = makeSourceAddress(key)
    const addresses = Array.from({ length: 500 }, (_, i) => addressOf(`10.0.${i >> 8}.${i & 255}`))
    expect(addressOf('10.0.0.9')).toBe(addresses[9])
    expect(new Set(addresses).size).toBeGreaterThan(498)
    for (const address of addresses) {
      const parts = address.split('.').map(Number)
      expect(parts).toHaveLength(4)
      expect(parts[0]).toBe(127)
      expect(parts.every((part) => part >= 0 && part <= 255)).toBe(true)
      expect(parts[3]).toBeGreaterThanOrEqual(1)
      expect(parts[3]).toBeLessThanOrEqual(254)
    }
  })

  test('cannot be told without the key', () => {
    const other = makeSourceAddress(new Uint8Array(32).fill(2))
    expect(other('10.0.0.9')).not.toBe(makeSourceAddress(key)('10.0.0.9'))
  })
})
