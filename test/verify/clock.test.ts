import { beforeAll, describe, expect, it } from 'vitest'
import { verifyEnvelope } from '../../src/verify/envelope.ts'
import { verifySnp } from '../../src/verify/snp/verify-snp.ts'
import { verifyTrustBundle } from '../../src/verify/trust-bundle.ts'
import { judgeReceipt, receiptOf } from '../support/synthetic-receipt.ts'
import { NOW, syntheticReport } from '../support/synthetic-snp.ts'
import {
  acceptBundle,
  envelopeOf,
  makeWorld,
  signBundle,
  type World,
} from '../support/synthetic-world.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

/** As a program without types may get it wrong; a bundle that expired long ago would pass with any of them. */
const NO_TIMES: readonly number[] = [
  Number.NaN,
  Infinity,
  JSON.parse('"2026-11-20T12:00:00Z"'),
  JSON.parse('null'),
]

describe('a time that is no number', () => {
  it('is never judged by', async () => {
    const report = await syntheticReport(world.chain)
    const envelope = await envelopeOf(world)
    const trust = { bundle: await acceptBundle(world), rootJwk: world.root.jwk }
    const bundle = await signBundle(world, { expires_at: '2020-01-01T00:00:00Z' })
    const receipt = await receiptOf(world)
    for (const now of NO_TIMES) {
      const attempts = [
        verifyTrustBundle(bundle, world.root.jwk, { now, environments: ['production'] }),
        verifyEnvelope(envelope, { now, trust, live: 'past' }),
        verifySnp(report, world.chain.pem, { now }),
        judgeReceipt(world, receipt, { now }),
      ]
      for (const attempt of attempts) {
        await expect(attempt).rejects.toThrow(new TypeError('now must be a number'))
      }
    }
    const live = { nonce: null, maxAgeSeconds: Number.NaN }
    await expect(verifyEnvelope(envelope, { now: NOW, trust, live })).rejects.toThrow(
      new TypeError('maxAgeSeconds must be a number'),
    )
  })
})

describe('an envelope', () => {
  it('is not judged where nobody says whether it is of the present, not even for a caller without types', async () => {
    const envelope = await envelopeOf(world)
    const trust = { bundle: await acceptBundle(world), rootJwk: world.root.jwk }
    const untyped: { live: 'past' } = JSON.parse('{}')
    await expect(verifyEnvelope(envelope, { now: NOW, trust, ...untyped })).rejects.toThrow(
      new TypeError("live is missing: say what is expected of the connection, or 'past'"),
    )
  })
})
