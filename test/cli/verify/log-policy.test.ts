import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  currentBundle,
  startPublishedRouter,
  type PublishedRouter,
} from '../../support/published-router.ts'
import { LOG_POLICY, logProofsOf } from '../../support/release-log.ts'
import { signBundle } from '../../support/synthetic-world.ts'
import { failedChecks, verify } from '../../support/verify-command.ts'

let router: PublishedRouter
let bundle: string

beforeAll(async () => {
  router = await startPublishedRouter()
  bundle = await signBundle(router.world, currentBundle(router.world))
  await router.write('policy.json', JSON.stringify(LOG_POLICY))
  await router.write('reporting.json', JSON.stringify({ ...LOG_POLICY, required: false }))
  await router.write('mistaken.json', JSON.stringify({ ...LOG_POLICY, quorum: 3 }))
}, 60_000)
afterAll(() => router.close())

/** Proofs of a log that has the two documents as its entries, cosigned so long ago. */
const proofsOf = (documents: readonly [string, string], ageSeconds = 60) =>
  logProofsOf(documents, Date.now() - ageSeconds * 1_000)

function judge(policy: string) {
  const root = ['--root-key', router.file('root.json')]
  const log = ['--log-policy', router.file(policy)]
  const rest = ['--allow-simulated', '--state', 'none', '--json']
  return verify('attestation', router.secure, ...root, ...log, ...rest)
}

describe('verify attestation --log-policy', () => {
  test('a router whose bundle and manifest stand in the log is valid', async () => {
    router.publish(bundle, await proofsOf([router.world.manifestJws, bundle]))
    const run = await judge('policy.json')
    expect(failedChecks(run)).toEqual([])
    expect(run.out).toContain('entry 1 of 2 in router.example/releases, 1 witnesses')
    expect(run.code).toBe(0)
  })

  test('a router without proofs fails by name, or is reported where the policy says so', async () => {
    router.publish(bundle)
    const run = await judge('policy.json')
    expect(failedChecks(run)).toEqual(['trust_bundle_logged', 'manifest_logged'])
    expect(run.out).toContain('no_proof: the router publishes no proof of it')
    expect(run.code).toBe(1)
    const reported = await judge('reporting.json')
    expect(reported.out).toContain('manifest_logged: no_proof: the router publishes no proof of it')
    expect(reported.code).toBe(0)
  })

  test('proofs of another bundle, and of a checkpoint long past, fail by name', async () => {
    const { manifestJws } = router.world
    router.publish(bundle, await proofsOf([manifestJws, 'another bundle']))
    const other = await judge('policy.json')
    expect(failedChecks(other)).toEqual(['trust_bundle_logged'])
    expect(other.out).toContain('not_included: the proof is of another entry than this one')
    router.publish(bundle, await proofsOf([manifestJws, bundle], 7_200))
    const stale = await judge('policy.json')
    expect(failedChecks(stale)).toEqual(['trust_bundle_logged', 'manifest_logged'])
    expect(stale.out).toContain('stale_checkpoint: the checkpoint was last cosigned 72')
  })

  test('a policy that contradicts itself is an input error', async () => {
    const run = await judge('mistaken.json')
    expect(run.err).toContain('the log policy asks for more witnesses than it names')
    expect(run.code).toBe(2)
  })
})
