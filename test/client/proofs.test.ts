import { beforeAll, describe, expect, test } from 'vitest'
import type { Proof } from '../../src/client/proof.ts'
import { Proofs } from '../../src/client/proofs.ts'
import { acceptBundle, envelopeOf, makeWorld } from '../support/synthetic-world.ts'
import { NOW } from '../support/synthetic-snp.ts'

const KEY = 'ab'.repeat(32)

let proof: Proof
beforeAll(async () => {
  const world = await makeWorld()
  proof = {
    tlsSpkiSha256: KEY,
    provenAt: NOW,
    expiresAt: NOW + 60_000,
    simulated: false,
    checks: [],
    envelope: await envelopeOf(world),
    bundle: await acceptBundle(world),
    bundleJws: '',
    hpkeKeyConfig: undefined,
    notes: [],
  }
}, 60_000)

/** The verification of a host, which ends when the test says so. */
function slowProof() {
  const { promise, resolve } = Promise.withResolvers<Proof>()
  return { prove: () => promise, end: (made: Proof) => resolve(made) }
}

const never = (): Promise<Proof> => {
  throw new Error('there is a proof already')
}

describe('the proofs of a client', () => {
  test('are shared by those who ask at the same time, and later', async () => {
    const proofs = new Proofs(() => NOW)
    const { prove, end } = slowProof()
    const asked = [proofs.obtain(KEY, prove), proofs.obtain(KEY, never)]
    end(proof)
    expect(await Promise.all(asked)).toEqual([proof, proof])
    expect(await proofs.obtain(KEY, never)).toBe(proof)
    expect(proofs.current()).toEqual([proof])
  })

  test('that are being made when all are dropped stand for nothing that is asked after that', async () => {
    const proofs = new Proofs(() => NOW)
    const [before, after] = [slowProof(), slowProof()]
    const waiting = proofs.obtain(KEY, before.prove)
    proofs.forget()
    const fresh = { ...proof, provenAt: NOW + 1 }
    const asked = proofs.obtain(KEY, after.prove)
    before.end(proof)
    expect(await waiting).toBe(proof)
    expect(proofs.current()).toEqual([])
    after.end(fresh)
    expect(await asked).toBe(fresh)
    expect(proofs.current()).toEqual([fresh])
  })

  test('that are dropped one by one leave newer ones, and those that are being made, in their place', async () => {
    const proofs = new Proofs(() => NOW)
    const fresh = { ...proof, provenAt: NOW + 1 }
    await proofs.obtain(KEY, () => Promise.resolve(proof))
    proofs.drop(KEY, proof)
    const { prove, end } = slowProof()
    const asked = proofs.obtain(KEY, prove)
    proofs.drop(KEY, proof)
    const shared = proofs.obtain(KEY, never)
    end(fresh)
    expect(await Promise.all([asked, shared])).toEqual([fresh, fresh])
    proofs.drop(KEY, proof)
    expect(proofs.current()).toEqual([fresh])
  })

  test('that fail are made anew', async () => {
    const proofs = new Proofs(() => NOW)
    const refused = proofs.obtain(KEY, () => Promise.reject(new Error('not proven')))
    await expect(refused).rejects.toThrow('not proven')
    expect(await proofs.obtain(KEY, () => Promise.resolve(proof))).toBe(proof)
  })
})
