import { describe, expect, test } from 'vitest'
import { sendMessage, type SendWebhook } from '../../../src/worker/webhooks/send.ts'

const TARGET = { url: 'https://hooks.example/in', secret: `whsec_${btoa('s'.repeat(32))}` }
const MESSAGE = { id: 'm1', body: '{"type":"route.resting"}' }

const sent = (send: SendWebhook) => sendMessage(send, TARGET, MESSAGE, 1_700_000_000_000)
const answering =
  (status: number, headers = {}) =>
  async () =>
    new Response(null, { status, headers })

describe('an attempt at a webhook', () => {
  test.each([
    [200, true, '200'],
    [204, true, '204'],
    [302, false, 'redirected'],
    [307, false, 'redirected'],
    [404, false, '404'],
    [410, false, '410'],
    [503, false, '503'],
  ])('that is answered %i is delivered: %s', async (status, delivered, word) => {
    const headers = { location: 'http://127.0.0.1/secret' }
    expect(await sent(answering(status, headers))).toEqual({ delivered, word })
  })

  test('follows no redirect and asks for none to be followed', async () => {
    const calls: RequestInit[] = []
    await sent(async (_url, init) => {
      calls.push(init)
      return new Response(null, { status: 301, headers: { location: 'http://127.0.0.1/' } })
    })
    expect(calls).toHaveLength(1)
    expect(calls[0]).toMatchObject({ method: 'POST', redirect: 'manual', body: MESSAGE.body })
  })

  test('that fails in the network is reported with a code of ours', async () => {
    const broken = sent(async () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1')))
    expect(await broken).toEqual({ delivered: false, word: 'unreachable' })
  })
})
