import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { acceptBundle } from '../../src/cli/verify/accepted-bundle.ts'
import { fromNow } from '../support/published-router.ts'
import { judgeReceipt, receiptOf } from '../support/synthetic-receipt.ts'
import { failures } from '../support/verdicts.ts'
import { createClient } from '../../src/client/index.ts'
import { memoryState } from '../../src/client/memory-state.ts'
import { fromBase64Url, toBase64Url } from '../../src/protocol/bytes.ts'
import { clientOf, startFakeRouter, type FakeRouter } from '../support/fake-router.ts'
import { makeWorld, signBundle, type World } from '../support/synthetic-world.ts'

/** Order of P-256. */
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** The same statement under the same key with the other of its two signatures: anyone can make it, without the key. */
export function malleated(jws: string): string {
  const [header, payload, signature = ''] = jws.split('.')
  const bytes = fromBase64Url(signature)
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).toString('hex')}`)
  const other = Buffer.from((N - s).toString(16).padStart(64, '0'), 'hex')
  bytes.set(other, 32)
  return `${header}.${payload}.${toBase64Url(bytes)}`
}

let world: World
const open: FakeRouter[] = []
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)
afterEach(() => open.splice(0).forEach((one) => one.close()))

test('one moment of a man in the middle does not lock a client out of every honest router', async () => {
  const honest = await startFakeRouter(world)
  const middle = await startFakeRouter(world)
  open.push(honest, middle)
  // Without any key: the envelope is another host's, the bundle is the genuine one with its signature (r, n - s).
  middle.misbehave({ envelopeSpki: honest.spki, bundleJws: malleated })

  const state = memoryState()
  const first = clientOf(world, middle, { state })
  const tricked = createClient(first.options, first.deps)
  await expect(tricked.verify()).rejects.toMatchObject({ failed: ['tls_key'] })
  await tricked.close()

  const second = clientOf(world, honest, { state })
  const client = createClient(second.options, second.deps)
  await expect(client.verify()).resolves.toHaveLength(1)
  await client.close()
})

test('an operator without the release root cannot make the receipts of its router look like a fork of that root', async () => {
  const own = await signBundle(world)
  const receipt = await receiptOf(world, { router: { trust_bundle_jws: own } })
  // What the router publishes at /.well-known/trust.json today: the same statement, the same key, the other signature.
  const result = await judgeReceipt(world, receipt, { trust: { bundles: [malleated(own)] } })
  expect(failures(result)).toEqual([])
})

test('one guest cannot keep the other guests of a broker sealed: they share the file of accepted bundles', async () => {
  const state = join(await mkdtemp(join(tmpdir(), 'audit-')), 'state.json')
  const dates = { not_before: fromNow(-1), not_after: fromNow(9) }
  const bundle = await signBundle(world, {
    issued_at: fromNow(-1),
    not_before: fromNow(-1),
    expires_at: fromNow(9),
    delegated_keys: { workload_manifest: { jwk: world.manifestKey.jwk, ...dates } },
  })
  // `proveGuest` -> `obtainBundle` -> `acceptBundle`, before any evidence of the guest is asked for.
  expect((await acceptBundle(malleated(bundle), world.root.jwk, { state })).ok).toBe(true)
  const honest = await acceptBundle(bundle, world.root.jwk, { state })
  expect(
    honest.checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`),
  ).toEqual([])
})
