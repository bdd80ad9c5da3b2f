import { describe, expect, test } from 'vitest'
import { memoryState } from '../../src/client/memory-state.ts'
import { makeKey } from '../support/synthetic-world.ts'

describe('the bundles that a process remembers', () => {
  test('are the newest ones, in whatever order clients store them', async () => {
    const { jwk, kid } = await makeKey()
    const state = memoryState()
    const bundle = (version: number) => ({ root: kid, version, sha256: `${version}`.repeat(64) })
    await state.write(bundle(8))
    await state.write(bundle(7))
    expect(await state.read(jwk)).toEqual(bundle(8))
    await state.write(bundle(9))
    expect(await state.read(jwk)).toEqual(bundle(9))
  })
})
