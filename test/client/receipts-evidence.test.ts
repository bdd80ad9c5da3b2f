import { beforeAll, expect, test } from 'vitest'
import { memoryState } from '../../src/client/memory-state.ts'
import { readOptions } from '../../src/client/options.ts'
import { ReceiptVerifier } from '../../src/client/receipts.ts'
import type { Transport } from '../../src/client/transport.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'
import { clientOf } from '../support/fake-router.ts'
import { evidence, RECEIPT_ID, receiptOf } from '../support/synthetic-receipt.ts'
import { makeWorld, type World } from '../support/synthetic-world.ts'

let world: World
beforeAll(async () => {
  world = await makeWorld()
}, 60_000)

test('one wrong answer in the place of an envelope does not spoil the receipts of the hour', async () => {
  const receipt = await receiptOf(world, {
    byReference: true,
    claims: { endpoint: '/v1/chat/completions' },
  })
  const { jwk, kid } = world.receiptKey
  let meddles = true
  const transport: Transport = {
    // Over EHBP a GET is not encrypted: whoever ends the TLS answers it as he likes, once.
    send: async ({ url: { pathname } }) => {
      const envelope = evidence.get(pathname.split('/').at(-1) ?? '')
      const answer =
        pathname === '/.well-known/jwks.json'
          ? Response.json({ keys: [{ ...jwk, kid }] })
          : pathname.startsWith('/attestation/') && envelope !== undefined
            ? new Response(meddles ? '{}' : envelope)
            : Response.json({ id: RECEIPT_ID, receipt })
      const { body, headers, status, statusText } = answer
      return { body, headers, status, statusText }
    },
    proofs: () => [],
    refresh: () => {},
    close: async () => {},
  }
  const { options, deps } = clientOf(world, { baseURL: 'https://router.test' }, {})
  const verifier = new ReceiptVerifier(readOptions(options, deps), transport, memoryState())
  const verify = async () =>
    verifier.verify({
      path: '/v1/chat/completions',
      receiptId: RECEIPT_ID,
      requestSha256: await sha256Hex('client request'),
      responseSha256: await sha256Hex('client response'),
      constraints: async () => undefined,
      credentials: {},
    })
  expect(await verify()).toMatchObject({ ok: false, failed: ['list of evidence'] })
  meddles = false
  expect(await verify()).toMatchObject({ ok: true, failed: [] })
})
