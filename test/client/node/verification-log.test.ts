import { beforeAll, expect, test } from 'vitest'
import type { Client } from '../../../src/client/index.ts'
import { VerificationLog } from '../../../src/client/node/verification-log.ts'
import { verificationPage } from '../../../src/client/node/verification-page.ts'
import type { Proof } from '../../../src/client/proof.ts'
import { judge } from '../../../src/verify/check.ts'
import { NOW } from '../../support/synthetic-snp.ts'
import { acceptBundle, envelopeOf, makeWorld } from '../../support/synthetic-world.ts'

let proof: Proof
beforeAll(async () => {
  const world = await makeWorld()
  proof = {
    tlsSpkiSha256: 'ab'.repeat(32),
    provenAt: NOW,
    expiresAt: NOW + 60_000,
    simulated: false,
    checks: [judge('ark_pinned', undefined, 'ARK-Genoa')],
    envelope: await envelopeOf(world),
    bundle: await acceptBundle(world),
    bundleJws: '',
    hpkeKeyConfig: undefined,
    notes: [],
  }
}, 60_000)

/** The log of a client that holds these proofs. */
function logOf(proofs: readonly Proof[]): VerificationLog {
  const client: Client = {
    fetch,
    receipts: { of: async () => undefined, settled: async () => {} },
    verify: async () => proofs,
    proofs: () => proofs,
    close: async () => {},
  }
  return new VerificationLog({ client, now: () => NOW, router: new URL('https://router.test') })
}

const headingOf = (log: VerificationLog) => /<h1>.*<\/h1>/.exec(verificationPage(log.state()))?.[0]

test('a host that is proven is shown as such', () => {
  const log = logOf([proof])
  expect(log.state()).toMatchObject({
    proven: true,
    simulated: false,
    hosts: [{ simulated: false }],
  })
  expect(headingOf(log)).toBe('<h1>https://router.test: <span class="ok">proven</span></h1>')
})

test('a simulated platform is never shown as proven without a word on what that proves', () => {
  const log = logOf([proof, { ...proof, simulated: true }])
  expect(log.state()).toMatchObject({
    proven: true,
    simulated: true,
    hosts: [{ simulated: false }, { simulated: true }],
  })
  expect(headingOf(log)).toBe(
    '<h1>https://router.test: <span class="bad">proven on a simulated platform, which proves nothing about any machine</span></h1>',
  )
})
