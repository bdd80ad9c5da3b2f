import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defaultStatePath, fileState } from '../../../src/client/node/bundle-state.ts'
import { makeKey } from '../../support/synthetic-world.ts'

let directory: string

beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'cmr-state-'))))
afterEach(() => rmSync(directory, { recursive: true }))

const bundle = (root: string, version: number) => ({
  root,
  version,
  sha256: version.toString(16).padStart(64, '0'),
  jws: `bundle ${version}`,
})

describe('the file of accepted bundles', () => {
  test('has a place for a user without a home, too, so that no command fails for it before it is needed', () => {
    const homeless = () => {
      throw new Error('uv_os_homedir returned ENOENT')
    }
    const file = 'confidential-model-router/trust-bundles.json'
    expect(defaultStatePath({}, homeless)).toBe(`/.local/state/${file}`)
    expect(defaultStatePath({ XDG_STATE_HOME: '/state' }, homeless)).toBe(`/state/${file}`)
  })

  test('keeps a newer bundle that another program stored meanwhile', async () => {
    const state = fileState(join(directory, 'bundles.json'))
    const { jwk, kid } = await makeKey()
    await state.write(bundle(kid, 8))
    await state.write(bundle(kid, 7))
    expect(await state.read(jwk)).toEqual(bundle(kid, 8))
    await state.write(bundle(kid, 9))
    expect(await state.read(jwk)).toEqual(bundle(kid, 9))
  })

  test('holds one bundle for each release root', async () => {
    const state = fileState(join(directory, 'bundles.json'))
    const [one, other] = await Promise.all([makeKey(), makeKey()])
    await state.write(bundle(one.kid, 8))
    await state.write(bundle(other.kid, 2))
    expect(await state.read(one.jwk)).toEqual(bundle(one.kid, 8))
    expect(await state.read(other.jwk)).toEqual(bundle(other.kid, 2))
  })

  test('keeps all that several clients of one program store at the same time', async () => {
    const path = join(directory, 'bundles.json')
    const keys = await Promise.all(Array.from({ length: 8 }, makeKey))
    await Promise.all(keys.map(({ kid }, at) => fileState(path).write(bundle(kid, at + 1))))
    const stored = await Promise.all(keys.map(({ jwk }) => fileState(path).read(jwk)))
    expect(stored).toEqual(keys.map(({ kid }, at) => bundle(kid, at + 1)))
    expect(readdirSync(directory)).toEqual(['bundles.json'])
  })

  test('keeps the newest of one root, in whatever order they are stored at the same time', async () => {
    const path = join(directory, 'bundles.json')
    const { jwk, kid } = await makeKey()
    const versions = [4, 9, 2, 7, 8, 1]
    await Promise.all(versions.map((version) => fileState(path).write(bundle(kid, version))))
    expect(await fileState(path).read(jwk)).toEqual(bundle(kid, 9))
  })

  test('goes on where a program ended while it stored one', { timeout: 60_000 }, async () => {
    const path = join(directory, 'bundles.json')
    const { jwk, kid } = await makeKey()
    writeFileSync(`${path}.lock`, '')
    await fileState(path).write(bundle(kid, 3))
    expect(await fileState(path).read(jwk)).toEqual(bundle(kid, 3))
  })

  test('is refused by name where nothing can be written beside it', async () => {
    const path = join(directory, 'file', 'bundles.json')
    writeFileSync(join(directory, 'file'), '')
    const { kid } = await makeKey()
    await expect(fileState(path).write(bundle(kid, 3))).rejects.toMatchObject({
      code: 'bundle_state',
      message: `cannot write the state file ${path}`,
    })
  })
})
