import { beforeAll, expect, test } from 'vitest'
import { AttestationRefused, createClient, type ClientPolicy } from '../../src/client/index.ts'
import { toBase64, toHex } from '../../src/protocol/bytes.ts'
import { clientOf, startFakeRouter, type Misdeeds } from '../support/fake-router.ts'
import { LOG_POLICY } from '../support/release-log.ts'
import { MEASUREMENT, NOW, revocationList } from '../support/synthetic-snp.ts'
import { makeWorld, signBundle, type World, WORKLOAD } from '../support/synthetic-world.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

const WEEK = 604_800
const DAY_MS = 86_400_000

/** Whether a router whose evidence may be a week old gets requests: at once, and after a time. */
async function askTwice(
  misdeeds: Misdeeds,
  { after, policy = {} }: { readonly after: number; readonly policy?: ClientPolicy },
): Promise<readonly string[]> {
  const host = await startFakeRouter(world)
  host.misbehave({
    ...misdeeds,
    envelope: (honest) => ({
      claimed: {
        ...honest.claimed,
        ...misdeeds.envelope?.(honest).claimed,
        max_age_seconds: WEEK,
      },
    }),
  })
  const { options, deps, pass } = clientOf(world, host, { policy })
  const client = createClient(options, deps)
  const ask = () =>
    client.fetch(`${host.baseURL}/v1/chat/completions`, { method: 'POST', body: '{}' }).then(
      () => 'sent',
      (error: unknown) => (error instanceof AttestationRefused ? error.failed.join() : 'no answer'),
    )
  const first = await ask()
  pass(after)
  const later = await ask()
  await client.close()
  host.close()
  return [first, later]
}

test('a proof ends when what it rests on ends: the entry of the measurement, and the delegated key', async () => {
  const soon = new Date(NOW + 60_000).toISOString()
  const entry = {
    measurement: toHex(MEASUREMENT),
    workload: WORKLOAD,
    workload_identity_tag: world.tag,
    not_after: soon,
  }
  const signed = await signBundle(world, { allowed_measurements: [entry] })
  const asked = await askTwice({ bundleJws: () => signed }, { after: 6 * DAY_MS })
  expect(asked).toEqual(['sent', 'measurement_allowed'])
})

test("a proof ends with AMD's revocation list, which the router chooses as long as it is valid", async () => {
  const list = await revocationList([], { issuer: world.chain.arkName, days: 1 })
  const envelope = () => ({ claimed: { snp_crl_b64: toBase64(list) } })
  const asked = await askTwice({ envelope }, { after: 2 * DAY_MS })
  expect(asked).toEqual(['sent', 'revocation'])
})

test('a proof ends when the witnesses of the public log have seen it too long ago for the policy', async () => {
  const policy = { logPolicy: LOG_POLICY }
  expect(await askTwice({}, { after: 2 * 3_600_000, policy })).toEqual([
    'sent',
    'trust_bundle_logged,manifest_logged',
  ])
  const reported = { logPolicy: { ...LOG_POLICY, required: false } }
  expect(await askTwice({}, { after: 2 * 3_600_000, policy: reported })).toEqual(['sent', 'sent'])
})
