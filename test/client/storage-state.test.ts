import { describe, expect, test } from 'vitest'
import { storageState } from '../../src/client/storage-state.ts'
import { memoryStorage } from '../support/memory-storage.ts'
import { makeKey } from '../support/synthetic-world.ts'

describe("the bundles in a page's storage", () => {
  test('are the newest ones, in whatever order pages store them', async () => {
    const { jwk, kid } = await makeKey()
    const storage = memoryStorage()
    const [one, other] = [storageState(storage), storageState(storage)]
    const bundle = (version: number) => ({ root: kid, version, sha256: `${version}`.repeat(64) })
    await one.write(bundle(8))
    await other.write(bundle(7))
    expect(await one.read(jwk)).toEqual(bundle(8))
    await other.write(bundle(9))
    expect(await one.read(jwk)).toEqual(bundle(9))
  })
})
