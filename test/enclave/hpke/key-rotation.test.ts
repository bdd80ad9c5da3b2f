import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { HpkeKey } from '../../../src/enclave/hpke/hpke-key.ts'
import { HpkeKeyring } from '../../../src/enclave/hpke/hpke-keyring.ts'
import { KeyRotation } from '../../../src/enclave/hpke/key-rotation.ts'

const HOUR = 3_600_000

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

function keyOf(name: string): HpkeKey {
  return { config: new Uint8Array(), configSha256: name, decapsulate: async (enc) => enc }
}

function rotating(prove: (name: string) => Promise<void> = async () => {}) {
  let made = 0
  const failures: string[] = []
  const keyring = new HpkeKeyring(keyOf('0'), () => Date.now(), {
    maxUses: 4,
    graceMs: HOUR,
    maxFormer: 7,
  })
  const rotation = new KeyRotation({
    keyring,
    make: async () => keyOf(String(++made)),
    prove,
    onFailure: (reason) => failures.push(reason),
  })
  const use = async () => {
    await keyring.decapsulate(crypto.getRandomValues(new Uint8Array(32)), crypto.randomUUID())
    rotation.used()
  }
  return { keyring, rotation, failures, use, name: () => keyring.current.configSha256 }
}

describe('the HPKE key', () => {
  test('is replaced twice a day', async () => {
    const { name } = rotating()
    await vi.advanceTimersByTimeAsync(12 * HOUR - 1)
    expect(name()).toBe('0')
    await vi.advanceTimersByTimeAsync(1)
    expect(name()).toBe('1')
    await vi.advanceTimersByTimeAsync(12 * HOUR)
    expect(name()).toBe('2')
  })

  test('is replaced sooner where it was used up to three quarters', async () => {
    const { name, use } = rotating()
    await use()
    await use()
    expect(name()).toBe('0')
    await use()
    await vi.advanceTimersByTimeAsync(0)
    expect(name()).toBe('1')
  })

  test('is in use only once it is proven', async () => {
    const proof = Promise.withResolvers<void>()
    const { name, rotation } = rotating(() => proof.promise)
    const rotated = rotation.rotate()
    await vi.advanceTimersByTimeAsync(1000)
    expect(name()).toBe('0')
    proof.resolve()
    await rotated
    expect(name()).toBe('1')
  })

  test('stays, and is tried again in half a minute, where no report can be had', async () => {
    let fail = true
    const { name, failures, use } = rotating(async () => {
      if (fail) throw new Error('no report')
    })
    for (let i = 0; i < 4; i++) await use()
    await vi.advanceTimersByTimeAsync(29_999)
    expect([name(), failures]).toEqual(['0', ['no report']])
    await expect(use()).rejects.toMatchObject({ code: 'used_up' })
    fail = false
    await vi.advanceTimersByTimeAsync(1)
    expect(name()).toBe('2')
    await use()
  })

  test('stays when the daemon closes', async () => {
    const { name, rotation } = rotating()
    rotation.close()
    await vi.advanceTimersByTimeAsync(48 * HOUR)
    expect(name()).toBe('0')
  })
})
