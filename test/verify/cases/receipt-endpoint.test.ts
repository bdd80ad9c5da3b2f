import { beforeAll, describe, expect, test } from 'vitest'
import { RECEIPT_ENDPOINTS, type ReceiptClaims } from '../../../src/protocol/receipt.ts'
import { judgeReceipt, receiptOf } from '../../support/synthetic-receipt.ts'
import { makeWorld, type World } from '../../support/synthetic-world.ts'
import { expectOnly, failures } from '../../support/verdicts.ts'

/** The endpoint that a receipt names. */

let world: World

beforeAll(async () => {
  world = await makeWorld()
})

async function judge(claims: Partial<ReceiptClaims>, endpoint?: string) {
  return judgeReceipt(world, await receiptOf(world, { claims }), { expected: { endpoint } })
}

describe('endpoint', () => {
  test.each(RECEIPT_ENDPOINTS)('%s is known, and shown', async (endpoint) => {
    for (const expected of [undefined, endpoint]) {
      const result = await judge({ endpoint, completion_tokens: 0 }, expected)
      expect(failures(result)).toEqual([])
      const check = result.checks.find(({ name }) => name === 'endpoint')
      expect(check).toMatchObject({ ok: true, detail: endpoint })
    }
  })

  test.each(['/v2/oracle', '', '/v1/messages/', '/V1/messages', 'chat'])(
    '"%s" is refused by name',
    async (endpoint) => {
      expectOnly(await judge({ endpoint }), 'endpoint', `no endpoint is known as ${endpoint}`)
    },
  )

  test('another one than was called is refused', async () => {
    const result = await judge({ endpoint: '/v1/responses' }, '/v1/messages')
    expectOnly(result, 'endpoint', 'the receipt says /v1/responses, not /v1/messages')
  })

  test('none, as receipts of earlier versions have it, is refused only where one is expected', async () => {
    const result = await judge({})
    expect(failures(result)).toEqual([])
    expect(result.checks.map(({ name }) => name)).not.toContain('endpoint')
    const wanted = await judge({}, '/v1/messages')
    expectOnly(wanted, 'endpoint', 'the receipt says nothing, not /v1/messages')
  })

  test('embeddings generate nothing, so that completion tokens contradict them', async () => {
    const result = await judge({ endpoint: '/v1/embeddings', completion_tokens: 5 })
    expectOnly(result, 'endpoint', '/v1/embeddings generates nothing, but 5 completion tokens are')
  })

  test.each(['client_request_digest', 'client_response_digest'] as const)(
    'without %s nobody knows what the endpoint was sent or gave',
    async (missing) => {
      const result = await judge({ endpoint: '/v1/messages', [missing]: undefined })
      expectOnly(result, 'endpoint', 'a receipt of /v1/messages has both digests of the client')
    },
  )
})
