import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { writeAcceptedBundle } from '../../src/client/node/bundle-state.ts'
import { newestUnder } from '../../src/cli/verify/release-trust.ts'
import { toHex } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { newestOf } from '../../src/verify/newest-bundle.ts'
import { envelopeProviderJudge } from '../../src/verify/provider-envelope.ts'
import { anchorsOf, judgeReceipt, providerHopOf, receiptOf } from '../support/synthetic-receipt.ts'
import { MEASUREMENT, NOW } from '../support/synthetic-snp.ts'
import { makeWorld, signBundle, type World } from '../support/synthetic-world.ts'
import { failures } from '../support/verdicts.ts'

let router: World
let provider: World
beforeAll(async () => {
  ;[router, provider] = await Promise.all([makeWorld(), makeWorld()])
}, 60_000)

const ENVIRONMENTS = ['production']

describe("a fork under a provider's release root", () => {
  test('the remembered bundle of a version and another one of that version in the receipt are refused', async () => {
    const block = await providerHopOf(provider) // names a bundle of version 7
    const text = await receiptOf(router, { claims: { inference_attestation: block } })
    const state = join(await mkdtemp(join(tmpdir(), 'audit-')), 'state.json')
    // This machine has seen another bundle of version 7: the root tells different people different things.
    const seen = await signBundle(provider, {
      version: 7,
      min_guest_svn: 0,
      allowed_measurements: [],
    })
    const accepted = {
      root: provider.root.kid,
      version: 7,
      sha256: await sha256Hex(seen),
      jws: seen,
    }
    await writeAcceptedBundle(state, accepted)
    const newest = await newestUnder(provider.root.jwk, state, {
      now: NOW,
      environments: ENVIRONMENTS,
    })
    expect(newest).toMatchObject({ version: 7 })
    const result = await judgeReceipt(router, text, {
      requireProvider: true,
      judgeProviderHop: envelopeProviderJudge(
        { rootJwk: provider.root.jwk, environments: ENVIRONMENTS, newest },
        { anchors: anchorsOf(provider) },
      ),
    })
    // The same fork under the router's root is `newest_bundle: there are two different bundles of version 7`.
    expect({ ok: result.ok, provider: result.provider, failures: failures(result) }).toMatchObject({
      ok: false,
    })
  })

  test('is not seen where the remembered bundle is the one in the receipt', async () => {
    const block = await providerHopOf(provider)
    const text = await receiptOf(router, { claims: { inference_attestation: block } })
    const options = { now: NOW, environments: ENVIRONMENTS }
    const newest = await newestOf([block.trust_bundle_jws ?? ''], provider.root.jwk, options)
    expect(newest).toMatchObject({ version: 7 })
    const trust = { rootJwk: provider.root.jwk, environments: ENVIRONMENTS, newest }
    const judgeProviderHop = envelopeProviderJudge(trust, { anchors: anchorsOf(provider) })
    const result = await judgeReceipt(router, text, { judgeProviderHop, requireProvider: true })
    expect(failures(result)).toEqual([])
  })

  test('a revocation is not lost because another bundle of the same version stands before it', async () => {
    const measurements = [toHex(MEASUREMENT)]
    const silent = await signBundle(provider, { version: 8 })
    const revoking = await signBundle(provider, { version: 8, revoked: { measurements } })
    const options = { now: NOW, environments: ENVIRONMENTS }
    const block = await providerHopOf(provider)
    const text = await receiptOf(router, { claims: { inference_attestation: block } })
    for (const bundles of [
      [revoking, silent],
      [silent, revoking],
    ]) {
      const newest = await newestOf(bundles, provider.root.jwk, options)
      const trust = { rootJwk: provider.root.jwk, environments: ENVIRONMENTS, newest }
      const judgeProviderHop = envelopeProviderJudge(trust, { anchors: anchorsOf(provider) })
      const result = await judgeReceipt(router, text, { judgeProviderHop, requireProvider: true })
      expect({ first: bundles[0] === silent ? 'silent' : 'revoking', ok: result.ok }).toMatchObject(
        { ok: false },
      )
    }
  })
})
