import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { signedHeaders } from '../../../src/worker/webhooks/signature.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

test('the standardwebhooks package verifies what is signed, and nothing that was changed', async () => {
  const body = JSON.stringify({ type: 'balance.low', data: { customer_id: 'ümlaut' } })
  const headers = await signedHeaders({ id: 'msg.1', body }, SECRET, Date.now())
  expect(new Webhook(SECRET).verify(body, { ...headers })).toEqual(JSON.parse(body))
  const refused = (text: string, with_: Record<string, string>) => () =>
    new Webhook(SECRET).verify(text, with_)
  expect(refused(`${body} `, { ...headers })).toThrow('No matching signature found')
  expect(refused(body, { ...headers, 'webhook-id': 'msg.2' })).toThrow(
    'No matching signature found',
  )
})

test('an old message is recognised by its timestamp, which is signed', async () => {
  const late = await signedHeaders({ id: 'm', body: '{}' }, SECRET, Date.now() - 3_600_000)
  expect(() => new Webhook(SECRET).verify('{}', { ...late })).toThrow('Message timestamp too old')
})
