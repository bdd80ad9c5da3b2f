import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { toHex } from '../../src/protocol/bytes.ts'
import { clientOf, startFakeRouter } from '../support/fake-router.ts'
import { MEASUREMENT, NOW } from '../support/synthetic-snp.ts'
import { makeWorld, signBundle, type World, WORKLOAD } from '../support/synthetic-world.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

const WEEK = 604_800

test('a proof ends when what it rests on ends: the entry of the measurement, and the delegated key', async () => {
  const host = await startFakeRouter(world)
  const soon = new Date(NOW + 60_000).toISOString()
  const entry = {
    measurement: toHex(MEASUREMENT),
    workload: WORKLOAD,
    workload_identity_tag: world.tag,
    not_after: soon,
  }
  const signed = await signBundle(world, { allowed_measurements: [entry] })
  host.misbehave({
    bundleJws: () => signed,
    envelope: (honest) => ({ claimed: { ...honest.claimed, max_age_seconds: WEEK } }),
  })
  const { options, deps, pass } = clientOf(world, host)
  const client = createClient(options, deps)
  const ask = () =>
    client.fetch(`${host.baseURL}/v1/chat/completions`, { method: 'POST', body: '{}' }).then(
      () => 'sent',
      () => 'refused',
    )
  const first = await ask()
  pass(6 * 86_400_000)
  const later = await ask()
  await client.close()
  host.close()
  expect([first, later]).toEqual(['sent', 'refused'])
})
