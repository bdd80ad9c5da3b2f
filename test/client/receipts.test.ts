import { beforeAll, describe, expect, test } from 'vitest'
import { toBase64 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { readOptions, type ClientPolicy } from '../../src/client/options.ts'
import { ReceiptVerifier } from '../../src/client/receipts.ts'
import type { Transport } from '../../src/client/transport.ts'
import { revocationList } from '../support/synthetic-snp.ts'
import { RECEIPT_ID, receiptOf } from '../support/synthetic-receipt.ts'
import { clientOf } from '../support/fake-router.ts'
import { envelopeOf, makeWorld, type World } from '../support/synthetic-world.ts'

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

async function verify(receipt: string, policy: ClientPolicy) {
  const { options, deps } = clientOf(world, { baseURL: 'https://router.test' }, { policy })
  const verifier = new ReceiptVerifier(readOptions(options, deps), transportOf(receipt))
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
