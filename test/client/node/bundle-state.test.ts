import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fileState } from '../../../src/client/node/bundle-state.ts'
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
})
