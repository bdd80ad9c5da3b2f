import { beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { readOptions } from '../../src/client/options.ts'
import { RouterTrustSource } from '../../src/client/trust-source.ts'
import { clientOf } from '../support/fake-router.ts'
import { makeWorld, signBundle, type World } from '../support/synthetic-world.ts'

let world: World

beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

describe('the trust bundle of a router', () => {
  test('is refused where a newer one was stored while the router took its time to answer', async () => {
    const [older, newer] = await Promise.all([
      signBundle(world, { version: 7 }),
      signBundle(world, { version: 8 }),
    ])
    const root = world.root.kid
    const seen = { root, version: 8, sha256: await sha256Hex(newer) }
    let stored = { root, version: 7, sha256: await sha256Hex(older) }
    const state = { read: async () => stored, write: async () => {} }
    const slow: typeof fetch = async () => {
      await Promise.resolve()
      stored = seen
      return Response.json({ trust_bundle_jws: older })
    }
    const { options, deps } = clientOf(world, { baseURL: 'https://router.test' }, { state })
    const source = new RouterTrustSource(readOptions(options, deps), state, slow)
    await expect(source.newest()).rejects.toMatchObject({
      code: 'attestation_refused',
      failed: ['trust_bundle_version'],
      message: expect.stringContaining('version 7 is older than 8, seen before'),
    })
  })
})
