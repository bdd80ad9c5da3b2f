import { expect, test } from 'vitest'
import { digestAnswer } from '../../src/client/answer-digest.ts'
import { ObservedExchange } from '../../src/client/observed-exchange.ts'
import type { Exchange, ReceiptVerifier } from '../../src/client/receipts.ts'
import type { ReceiptOutcome } from '../../src/client/receipt-outcome.ts'
import { utf8 } from '../../src/protocol/bytes.ts'
import { sha256Hex } from '../../src/protocol/digest.ts'

const OUTCOME: ReceiptOutcome = {
  ok: true,
  path: '/v1/chat/completions',
  id: 'the id',
  receipt: undefined,
  checks: [],
  failed: [],
  notes: [],
  simulated: false,
  claims: undefined,
}

/** An exchange whose answer is a stream of these pieces, with what was verified and reported of it. */
function exchangeOf(...pieces: readonly string[]) {
  const verified: Exchange[] = []
  const verifier: Pick<ReceiptVerifier, 'verify'> = {
    verify: async (exchange) => {
      verified.push(exchange)
      return OUTCOME
    },
  }
  const request = {
    url: new URL('https://router.test/v1/chat/completions'),
    method: 'POST',
    headers: new Headers({ authorization: 'Bearer secret', accept: '*/*' }),
    body: utf8('the request'),
    signal: new AbortController().signal,
  }
  const digest = digestAnswer(new Headers({ 'content-type': 'text/event-stream' }))
  const exchange = new ObservedExchange(request, digest, verifier)
  const moments: string[] = []
  const body = exchange.tap(new Blob([pieces.join('')]).stream(), {
    known: () => moments.push('known'),
    ended: async () => void moments.push('ended'),
  })
  return { body, exchange, moments, verified }
}

const FIRST = 'data: {"choices":[]}\n\n'
const NAMING = 'data: {"service":{"receipt_id":"the id"}}\n\n'

test('a stream is known once, though it goes on after the event with its receipt, and is verified once', async () => {
  const { body, exchange, moments, verified } = exchangeOf(FIRST, NAMING, 'data: [DONE]\n\n')
  expect(await new Response(body).text()).toBe(`${FIRST}${NAMING}data: [DONE]\n\n`)
  expect(moments).toEqual(['known', 'ended'])
  expect(await exchange.known).toBe(true)
  expect(await Promise.all([exchange.outcome(), exchange.outcome()])).toEqual([OUTCOME, OUTCOME])
  expect(verified).toMatchObject([
    {
      path: '/v1/chat/completions',
      receiptId: 'the id',
      requestSha256: await sha256Hex('the request'),
      responseSha256: await sha256Hex(FIRST),
      credentials: { authorization: 'Bearer secret' },
    },
  ])
})

test('an answer that is given up before its end is never known', async () => {
  const { body, exchange, moments, verified } = exchangeOf(FIRST)
  await body.cancel()
  expect(await exchange.known).toBe(false)
  expect([moments, verified]).toEqual([[], []])
})
