import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke'
import { describe, expect, test } from 'vitest'
import { makeHpkeKey, type HpkeKey } from '../../../src/enclave/hpke/hpke-key.ts'
import { HpkeKeyring } from '../../../src/enclave/hpke/hpke-keyring.ts'
import { copyBytes, toHex, type Bytes } from '../../../src/protocol/bytes.ts'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import { readKeyConfig } from '../../../src/protocol/hpke-key-config.ts'

async function encapsulateTo(key: HpkeKey) {
  const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM)
  const publicKey = await suite.DeserializePublicKey(readKeyConfig(key.config))
  const { shared_secret: secret, enc } = await KEM_DHKEM_X25519_HKDF_SHA256().Encap(publicKey)
  return { secret: toHex(secret), enc: copyBytes(enc) }
}

async function ring(limits = { maxUses: 4, graceMs: 1000, maxFormer: 2 }) {
  const clock = { now: 0 }
  const first = await makeHpkeKey()
  return { clock, first, keyring: new HpkeKeyring(first, () => clock.now, limits) }
}

/** Each use by another owner, so that nobody reaches a share of its own. */
let owners = 0
const another = () => `owner ${owners++}`
const anyEnc = (fill: number): Bytes => new Uint8Array(32).fill(fill)

describe('an HPKE key', () => {
  test('gives the shared secret that its sender has, and the digest of its configuration', async () => {
    const key = await makeHpkeKey()
    const { enc, secret } = await encapsulateTo(key)
    expect(toHex(await key.decapsulate(enc))).toBe(secret)
    expect(key.configSha256).toBe(await sha256Hex(key.config))
  })

  test('holds nothing that could be written down', async () => {
    expect(Object.keys(await makeHpkeKey())).toEqual(['config', 'configSha256', 'decapsulate'])
  })
})

describe('the keyring', () => {
  test('accepts an encapsulated key one time', async () => {
    const { first, keyring } = await ring()
    const { enc, secret } = await encapsulateTo(first)
    expect((await keyring.decapsulate(enc, another())).map(toHex)).toEqual([secret])
    await expect(keyring.decapsulate(enc, another())).rejects.toMatchObject({ code: 'replayed' })
  })

  test('decapsulates for an error any number of times, before and after, and forgets it', async () => {
    const { first, keyring } = await ring()
    const { enc } = await encapsulateTo(first)
    for (let i = 0; i < 9; i++) await keyring.decapsulate(enc, null)
    await keyring.decapsulate(enc, another())
    await keyring.decapsulate(enc, null)
    expect(keyring.worn).toBe(false)
  })

  test('serves the former key for its grace, newest first, and refuses replays to either', async () => {
    const { clock, first, keyring } = await ring()
    const before = await encapsulateTo(first)
    await keyring.decapsulate(before.enc, another())
    const second = await makeHpkeKey()
    keyring.adopt(second)
    expect(keyring.current).toBe(second)
    await expect(keyring.decapsulate(before.enc, another())).rejects.toMatchObject({
      code: 'replayed',
    })
    const late = await encapsulateTo(first)
    const secrets = (await keyring.decapsulate(late.enc, another())).map(toHex)
    expect(secrets).toHaveLength(2)
    expect(secrets[1]).toBe(late.secret)
    await expect(keyring.decapsulate(late.enc, another())).rejects.toMatchObject({
      code: 'replayed',
    })
    clock.now = 1000
    const later = await keyring.decapsulate((await encapsulateTo(first)).enc, another())
    expect(later).toHaveLength(1)
    keyring.adopt(await makeHpkeKey())
    // Accepted while the second key was the newest: it lives on with that key.
    await expect(keyring.decapsulate(late.enc, another())).rejects.toMatchObject({
      code: 'replayed',
    })
  })

  test('serves every former key for its own grace, however often the key was replaced meanwhile', async () => {
    const { clock, first, keyring } = await ring()
    const second = await makeHpkeKey()
    keyring.adopt(second)
    clock.now = 600
    keyring.adopt(await makeHpkeKey())
    clock.now = 999
    const oldest = await encapsulateTo(first)
    const secrets = (await keyring.decapsulate(oldest.enc, another())).map(toHex)
    expect(secrets).toHaveLength(3)
    expect(secrets[2]).toBe(oldest.secret)
    clock.now = 1000
    const middle = await encapsulateTo(second)
    const left = (await keyring.decapsulate(middle.enc, another())).map(toHex)
    expect(left).toHaveLength(2)
    expect(left[1]).toBe(middle.secret)
    await expect(keyring.decapsulate(oldest.enc, another())).rejects.toMatchObject({
      code: 'replayed',
    })
  })

  test('is not replaced for one owner while all places of former keys are taken, but for all owners it is', async () => {
    const { clock, keyring } = await ring({ maxUses: 8, graceMs: 1000, maxFormer: 1 })
    keyring.adopt(await makeHpkeKey())
    for (let i = 1; i <= 4; i++) await keyring.decapsulate(anyEnc(i), 'greedy')
    expect(keyring.worn).toBe(false)
    await expect(keyring.decapsulate(anyEnc(5), 'greedy')).rejects.toMatchObject({
      code: 'rate_limited',
    })
    clock.now = 1000
    expect(keyring.worn).toBe(true)
    clock.now = 999
    for (let i = 6; i <= 7; i++) await keyring.decapsulate(anyEnc(i), another())
    expect(keyring.worn).toBe(true)
    keyring.adopt(await makeHpkeKey())
    await expect(keyring.decapsulate(anyEnc(8), another())).resolves.toHaveLength(2)
  })

  test('says that it is worn before it is full, and accepts nothing more when it is', async () => {
    const { keyring } = await ring()
    const worn: boolean[] = []
    for (let i = 1; i <= 4; i++) {
      await keyring.decapsulate(anyEnc(i), another())
      worn.push(keyring.worn)
    }
    expect(worn).toEqual([false, false, true, true])
    await expect(keyring.decapsulate(anyEnc(5), another())).rejects.toMatchObject({
      code: 'used_up',
      message: 'the key is used up and no next one is in force yet',
    })
    keyring.adopt(await makeHpkeKey())
    await expect(keyring.decapsulate(anyEnc(5), another())).resolves.toHaveLength(2)
  })

  test('lets one owner use half of it, says that it is worn before that, and leaves the rest to others', async () => {
    const { keyring } = await ring({ maxUses: 16, graceMs: 1000, maxFormer: 2 })
    const wornAt: number[] = []
    for (let i = 1; i <= 8; i++) {
      await keyring.decapsulate(anyEnc(i), 'greedy')
      if (keyring.worn) wornAt.push(i)
    }
    expect(wornAt).toEqual([7, 8])
    const refused = keyring.decapsulate(anyEnc(9), 'greedy')
    await expect(refused).rejects.toMatchObject({
      code: 'rate_limited',
      message: 'the owner has its share and no next key is in force yet',
    })
    for (let i = 10; i <= 13; i++) await keyring.decapsulate(anyEnc(i), 'other')
    await expect(keyring.decapsulate(anyEnc(14), 'other')).rejects.toMatchObject({
      code: 'rate_limited',
    })
    await keyring.decapsulate(anyEnc(15), 'newcomer')
    keyring.adopt(await makeHpkeKey())
    expect(keyring.worn).toBe(false)
    await keyring.decapsulate(anyEnc(9), 'greedy')
  })

  test('refuses a point of low order', async () => {
    const { keyring } = await ring()
    await expect(keyring.decapsulate(anyEnc(0), another())).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'the encapsulated key is not usable',
    })
  })

  test('remembers as many uses as one key may have in some 40 MB', async () => {
    const keyring = new HpkeKeyring(
      { config: new Uint8Array(), configSha256: '', decapsulate: async (enc) => enc },
      () => 0,
    )
    const enc = new Uint8Array(32)
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    collect()
    const before = process.memoryUsage().heapUsed
    let used = 0
    for (; !keyring.worn; used++) {
      new DataView(enc.buffer).setUint32(0, used)
      await keyring.decapsulate(enc, `owner ${used % 1_000}`)
    }
    expect(used).toBe(196_608)
    collect()
    expect((process.memoryUsage().heapUsed - before) / used).toBeLessThan(200)
    expect(keyring.worn).toBe(true)
  }, 60_000)
})
