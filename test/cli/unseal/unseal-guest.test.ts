import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectGuest } from '../../../src/cli/unseal/guest-connection.ts'
import { unsealOver } from '../../../src/cli/unseal/unseal-guest.ts'
import { InputError } from '../../../src/cli/verify/input-error.ts'
import { makeSigningKey } from '../../../src/enclave/release/signing-key.ts'
import { startPublishedRouter, type PublishedRouter } from '../../support/published-router.ts'

let router: PublishedRouter
beforeAll(async () => {
  router = await startPublishedRouter()
}, 60_000)
afterAll(() => router.close())

describe('a router that was proven', () => {
  test('may have its secrets where its answer to them is lost, which the operator is told', async () => {
    const connection = await connectGuest(router.secure)
    let sent = 0
    const post = () => {
      sent += 1
      return Promise.reject(new InputError('no answer from https://router.example: socket hang up'))
    }
    const request = {
      policy: {
        rootJwk: router.world.root.jwk,
        // Its evidence names no configuration.
        configurationSha256: 'none',
        allowSimulated: true,
        requireCrl: false,
        state: 'none',
      },
      operator: await makeSigningKey({ extractable: false }),
      secrets: { ADMIN_TOKEN: 'x' },
    }
    await expect(unsealOver({ ...connection, post }, request)).rejects.toThrow(
      new InputError(
        'no answer from https://router.example: socket hang up. The router proved itself and was sent its secrets; whether they took effect is not known: run the command again',
      ),
    )
    expect(sent).toBe(1)
    connection.close()
  })
})
