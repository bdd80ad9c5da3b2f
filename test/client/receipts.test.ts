import { beforeAll, describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/protocol/bytes.ts'
import type { TrustBundleInput } from '../../src/protocol/trust-bundle.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { memoryState } from '../../src/client/memory-state.ts'
import { readOptions, type BundleState, type ClientPolicy } from '../../src/client/options.ts'
import { ReceiptVerifier } from '../../src/client/receipts.ts'
import type { Transport } from '../../src/client/transport.ts'
import { revocationList } from '../support/synthetic-snp.ts'
import { RECEIPT_ID, receiptOf } from '../support/synthetic-receipt.ts'
import { clientOf } from '../support/fake-router.ts'
import { envelopeOf, makeWorld, signBundle, type World } from '../support/synthetic-world.ts'

/** Receipts under the policy of a client, from a router that is as proven as it can be. */

let world: World

beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

/** Serves one receipt and the router's key. */
function transportOf(receipt: string): Transport {
  const { jwk, kid } = world.receiptKey
  const served: Readonly<Record<string, object>> = {
    [`/v1/receipts/${RECEIPT_ID}`]: { id: RECEIPT_ID, receipt },
    '/.well-known/jwks.json': { keys: [{ ...jwk, kid, alg: 'ES256', use: 'sig' }] },
  }
  return {
    send: async ({ url: { pathname } }) => {
      const found = served[pathname]
      const { body, headers, status, statusText } = Response.json(found ?? {}, {
        status: found === undefined ? 404 : 200,
      })
      return { body, headers, status, statusText }
    },
    proofs: () => [],
    refresh: () => {},
    close: async () => {},
  }
}

async function verify(receipt: string, policy: ClientPolicy, state: BundleState = memoryState()) {
  const { options, deps } = clientOf(world, { baseURL: 'https://router.test' }, { policy })
  const verifier = new ReceiptVerifier(readOptions(options, deps), transportOf(receipt), state)
  return verifier.verify({
    path: '/v1/chat/completions',
    receiptId: RECEIPT_ID,
    requestSha256: await sha256Hex('client request'),
    responseSha256: await sha256Hex('client response'),
    constraints: async () => undefined,
    credentials: {},
  })
}

const ENDPOINT = { endpoint: '/v1/chat/completions' } as const

describe('the policy of a client', () => {
  test('that demands the revocation list of AMD demands it of the evidence of receipts as well', async () => {
    const receipt = await receiptOf(world, { claims: ENDPOINT })
    expect(await verify(receipt, {})).toMatchObject({ ok: true, failed: [] })
    const outcome = await verify(receipt, { requireCrl: true })
    expect(outcome).toMatchObject({ ok: false, failed: ['router_attestation.revocation'] })
    expect(outcome.checks.find(({ ok }) => !ok)?.detail).toBe("AMD's revocation list is missing")
  })

  test('that demands it is met by a receipt whose evidence brings the list', async () => {
    const snp_crl_b64 = toBase64(await revocationList([], { issuer: world.chain.arkName }))
    const envelope = await envelopeOf(world, { claimed: { snp_crl_b64 } })
    const router = { evidence_raw: JSON.parse(JSON.stringify(envelope)) }
    const receipt = await receiptOf(world, { claims: ENDPOINT, router })
    expect(await verify(receipt, { requireCrl: true })).toMatchObject({ ok: true, failed: [] })
  })
})

/** What another program of the same user has stored: a bundle of this version. */
async function stored(version: number, changes: Partial<TrustBundleInput> = {}) {
  const jws = await signBundle(world, { version, ...changes })
  const state = memoryState()
  await state.write({ root: world.root.kid, version, sha256: await sha256Hex(jws), jws })
  return state
}

describe('the bundle that is stored, which may be newer than those that the proofs rest on', () => {
  test('revokes what it revokes of receipts as well', async () => {
    const receipt = await receiptOf(world, { claims: ENDPOINT })
    expect(await verify(receipt, {}, await stored(8))).toMatchObject({ ok: true, failed: [] })
    const state = await stored(8, { revoked: { identity_tags: [world.tag] } })
    const outcome = await verify(receipt, {}, state)
    expect(outcome).toMatchObject({ ok: false, failed: ['router_attestation.not_revoked'] })
    expect(outcome.checks.find(({ ok }) => !ok)?.detail).toBe(
      `identity tag ${world.tag} is revoked`,
    )
  })

  test('must be at hand where its version alone is known', async () => {
    const receipt = await receiptOf(world, { claims: ENDPOINT })
    const state = memoryState()
    await state.write({ root: world.root.kid, version: 8, sha256: 'ab'.repeat(32) })
    const outcome = await verify(receipt, {}, state)
    expect(outcome).toMatchObject({ ok: false, failed: ['newest_bundle'] })
    expect(outcome.checks.find(({ ok }) => !ok)?.detail).toBe(
      'version 8 was seen before, and only 7 is here',
    )
  })
})
