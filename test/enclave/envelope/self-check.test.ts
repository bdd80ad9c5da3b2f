import { beforeAll, describe, expect, it } from 'vitest'
import { checkOwnEnvelope } from '../../../src/enclave/envelope/self-check.ts'
import { describePublicKey } from '../../../src/enclave/release/signing-key.ts'
import { issueSimulatedChain } from '../../../src/enclave/simulated/chain.ts'
import { toBase64, type Bytes } from '../../../src/protocol/bytes.ts'
import { NOW, revocationList, syntheticAuthority } from '../../support/synthetic-snp.ts'
import { envelopeOf, makeWorld, signBundle, type World } from '../../support/synthetic-world.ts'

let world: World

beforeAll(async () => {
  const chain = await issueSimulatedChain(await syntheticAuthority(), NOW)
  world = { ...(await makeWorld()), chain }
}, 60_000)

async function check(crl: Bytes | undefined) {
  const claimed = { snp_crl_b64: crl && toBase64(crl) }
  const envelope = await envelopeOf(world, { claimed })
  const release = {
    bundleJws: await signBundle(world),
    rootPublicJwk: await describePublicKey(world.root.jwk),
    manifestJws: world.manifestJws,
    identityTag: world.tag,
  }
  const simulated = { arkSpkiSha256: world.chain.arkSpkiSha256 }
  return checkOwnEnvelope({ envelope }, { release, simulated, lastAccepted: undefined, now: NOW })
}

describe('checkOwnEnvelope', () => {
  it('passes with a revocation list that names no certificate of the chain, and without a list', async () => {
    for (const crl of [world.chain.crl, undefined]) {
      expect(await check(crl)).toMatchObject({ verified: true, failed: [] })
    }
  })

  it("fails once AMD's revocation list names the authority of this machine", async () => {
    const crl = await revocationList([0x10001], { issuer: world.chain.arkName })
    expect(await check(crl)).toMatchObject({
      verified: false,
      failed: ['revocation: the ASK is revoked'],
    })
  })
})
