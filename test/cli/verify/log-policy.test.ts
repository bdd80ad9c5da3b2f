import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { utf8 } from '../../../src/protocol/bytes.ts'
import { noteSigner } from '../../../src/cli/release/log/note-signer.ts'
import { formatCheckpoint } from '../../../src/verify/transparency/checkpoint.ts'
import { formatNote, formatNoteKey } from '../../../src/verify/transparency/signed-note.ts'
import { formatTlogProof } from '../../../src/verify/transparency/tlog-proof.ts'
import { merkleRoot, treeOf } from '../../support/merkle-reference.ts'
import {
  currentBundle,
  startPublishedRouter,
  type PublishedRouter,
} from '../../support/published-router.ts'
import { signBundle } from '../../support/synthetic-world.ts'
import { failedChecks, verify } from '../../support/verify-command.ts'

const LOG = noteSigner('router.example/releases', 'ed25519', new Uint8Array(32).fill(1))
const WITNESS = noteSigner('witness.example', 'cosignature', new Uint8Array(32).fill(2))

let router: PublishedRouter
let bundle: string

beforeAll(async () => {
  router = await startPublishedRouter()
  bundle = await signBundle(router.world, currentBundle(router.world))
  const policy = {
    log: formatNoteKey(LOG.key),
    witnesses: [formatNoteKey(WITNESS.key)],
    quorum: 1,
    max_age_seconds: 3600,
  }
  await router.write('policy.json', JSON.stringify(policy))
  await router.write('reporting.json', JSON.stringify({ ...policy, required: false }))
  await router.write('mistaken.json', JSON.stringify({ ...policy, quorum: 3 }))
}, 60_000)
afterAll(() => router.close())

/** Proofs of a log that has the two documents as its entries, cosigned so long ago. */
async function proofsOf(documents: readonly [string, string], ageSeconds = 60) {
  const entries = documents.map(utf8)
  const head = { origin: LOG.key.name, size: entries.length, root: merkleRoot(entries) }
  const text = formatCheckpoint(head)
  const seconds = Math.floor(Date.now() / 1_000) - ageSeconds
  const signatures = [LOG.sign(text, seconds), WITNESS.sign(text, seconds)]
  const checkpoint = formatNote({ text, signatures })
  const proof = async (index: number) =>
    formatTlogProof({ index, hashes: await treeOf(entries).inclusion(index), checkpoint })
  return { manifest: await proof(0), trust_bundle: await proof(1) }
}

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
