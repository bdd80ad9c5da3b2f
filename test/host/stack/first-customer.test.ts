import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { firstCustomer } from '../../../src/host/stack/first-customer.ts'
import { openStateDir } from '../../../src/host/stack/state-dir.ts'
import { listen } from '../../support/listen.ts'

const directory = mkdtempSync(join(tmpdir(), 'cmr-first-customer-'))
/** A router that accepts every key, and makes the same customer each time. */
const router = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end('{"id": "c1", "key": "k1"}')
})
let url = ''

beforeAll(async () => void (url = `http://127.0.0.1:${await listen(router)}`))
afterAll(() => {
  router.close()
  rmSync(directory, { recursive: true })
})

describe('the first customer of a local stack', () => {
  test.each(['', '{"customerId": "c', '{}'])(
    'is made anew where its file has %j, as a machine that lost its power may leave it',
    async (text) => {
      const state = openStateDir(mkdtempSync(join(directory, 'state-')))
      state.write('first-customer.json', text)
      const made = { customerId: 'c1', apiKey: 'k1' }
      expect(await firstCustomer(state, url, 'token')).toEqual(made)
      expect(JSON.parse(state.read('first-customer.json') ?? '')).toEqual(made)
    },
  )

  test('is the stored one as long as its key is accepted', async () => {
    const state = openStateDir(mkdtempSync(join(directory, 'state-')))
    const kept = { customerId: 'c0', apiKey: 'k0' }
    state.write('first-customer.json', JSON.stringify(kept))
    expect(await firstCustomer(state, url, 'token')).toEqual(kept)
  })
})
