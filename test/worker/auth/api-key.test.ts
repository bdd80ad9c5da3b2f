import { describe, expect, it } from 'vitest'
import type { Bytes } from '../../../src/protocol/bytes.ts'
import {
  importSecret,
  isCustomerId,
  newApiKey,
  newCustomerId,
  parseApiKey,
} from '../../../src/worker/auth/api-key.ts'

const random = (length: number): Bytes => crypto.getRandomValues(new Uint8Array(length))
const zeros = (length: number): Bytes => new Uint8Array(length)
const secretOf = (byte: number) => importSecret(new Uint8Array(32).fill(byte))

describe('a customer id', () => {
  it('is known under the secret it was made with and under no other', async () => {
    const id = await newCustomerId(await secretOf(1), random)
    expect(id).toMatch(/^[0-9a-hjkmnp-tv-z]{28}$/)
    expect(await isCustomerId(await secretOf(1), id)).toBe(true)
    expect(await isCustomerId(await secretOf(2), id)).toBe(false)
  })

  it('stays the same from release to release', async () => {
    expect(await newCustomerId(await secretOf(7), zeros)).toBe('0000000000003ezh142texng9d9y')
  })

  it('is refused with any one sign changed, too long, too short or in capitals', async () => {
    const secret = await secretOf(1)
    const id = await newCustomerId(secret, zeros)
    for (let i = 0; i < id.length; i++) {
      const other = id[i] === '0' ? '1' : '0'
      expect(await isCustomerId(secret, id.slice(0, i) + other + id.slice(i + 1))).toBe(false)
    }
    for (const wrong of ['', id.slice(1), `${id}0`, id.toUpperCase(), ` ${id}`, `${id}\n`]) {
      expect(await isCustomerId(secret, wrong)).toBe(false)
    }
  })
})

describe('an API key', () => {
  it('names its customer and its prefix', async () => {
    const id = await newCustomerId(await secretOf(1), random)
    const { key, prefix } = newApiKey(id, random)
    expect(key).toMatch(/^cmr_[0-9a-z]{28}_[0-9a-z]{10}_[0-9a-z]{40}$/)
    expect(key.startsWith(`${prefix}_`)).toBe(true)
    expect(parseApiKey(key)).toEqual({ customerId: id, prefix })
  })

  it('has one form and no other', async () => {
    const { key, prefix } = newApiKey('0'.repeat(28), random)
    const wrong = [
      '',
      'sk-123',
      prefix,
      `${key}0`,
      `${key}_0`,
      ` ${key}`,
      `${key}\n`,
      key.slice(0, -1),
      key.toUpperCase(),
      key.replace('cmr_', 'cmx_'),
      key.replace('_', '-'),
      `${key.slice(0, -1)}u`,
    ]
    for (const text of wrong) expect(parseApiKey(text)).toBeUndefined()
  })
})
