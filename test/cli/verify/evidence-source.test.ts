import { beforeAll, describe, expect, test } from 'vitest'
import { fetchEvidence } from '../../../src/cli/verify/evidence-source.ts'
import { InputError } from '../../../src/cli/verify/input-error.ts'
import type { RouterClient } from '../../../src/cli/verify/router-client.ts'
import { receiptOf } from '../../support/synthetic-receipt.ts'
import { makeWorld } from '../../support/synthetic-world.ts'

let receipt: string
beforeAll(async () => {
  receipt = await receiptOf(await makeWorld(), { byReference: true })
}, 60_000)

/** What a router at this address is asked for evidence that it does not publish, and whether with a key. */
async function asked(address: string, apiKey: string | undefined) {
  const calls: string[] = []
  const client: RouterClient = {
    base: new URL(address),
    get: async (path, headers = {}) => {
      calls.push(`${path.split('/').slice(0, 3).join('/')} ${headers['authorization'] ?? ''}`)
      return { status: 404, body: Buffer.alloc(0), headers: {}, tlsSpkiSha256: undefined }
    },
  }
  const failure = await fetchEvidence(client, receipt, apiKey).then(
    () => undefined,
    (error: unknown) => error,
  )
  return { keys: calls.filter((call) => call.includes('secret-key')).length, failure }
}

describe('the key that may read the evidence of a provider', () => {
  test.each([
    'https://router.example',
    'http://127.0.0.1:8787',
    'http://localhost:8787',
    'http://[::1]:8787',
  ])('is sent to %s', async (address) => {
    expect(await asked(address, 'secret-key')).toEqual({ keys: 1, failure: undefined })
  })

  test.each([
    'http://router.example',
    'http://127.evil.example',
    'http://localhost.evil.example',
    'http://10.0.0.7:8787',
  ])('is refused by name and never sent in the clear to %s', async (address) => {
    const { keys, failure } = await asked(address, 'secret-key')
    expect(keys).toBe(0)
    expect(failure).toEqual(
      new InputError(
        `CMR_API_KEY is not sent to ${address} in the clear: give an https address, or --evidence from a file`,
      ),
    )
  })

  test('is not missed over plain http where there is none', async () => {
    expect(await asked('http://router.example', undefined)).toEqual({ keys: 0, failure: undefined })
  })
})
