import { expect, test } from 'vitest'
import { bringsSecret } from '../../../src/worker/auth/secret.ts'

const brought = (authorization?: string) =>
  new Request('http://127.0.0.1/', {
    headers: authorization === undefined ? {} : { authorization },
  })

test('only a request that brings the secret brings it', async () => {
  expect(await bringsSecret(brought('Bearer secret'), 'secret')).toBe(true)
  for (const given of [undefined, 'Bearer secre', 'Bearer secrets', 'Bearer', 'secret']) {
    expect(await bringsSecret(brought(given), 'secret')).toBe(false)
  }
})

test('where there is no secret, nothing is it', async () => {
  expect(await bringsSecret(brought('Bearer '), '')).toBe(false)
  expect(await bringsSecret(brought(), '')).toBe(false)
})
