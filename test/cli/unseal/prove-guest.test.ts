import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectGuest } from '../../../src/cli/unseal/guest-connection.ts'
import { proveGuest } from '../../../src/cli/unseal/prove-guest.ts'
import { startPublishedRouter, type PublishedRouter } from '../../support/published-router.ts'

let router: PublishedRouter
beforeAll(async () => {
  router = await startPublishedRouter()
}, 60_000)
afterAll(() => router.close())

/** What fails, and what is noted, of a router whose evidence brings no list, and names no configuration. */
async function judge(requireCrl: boolean) {
  const connection = await connectGuest(router.secure)
  const { checks, notes } = await proveGuest(connection, {
    rootJwk: router.world.root.jwk,
    configurationSha256: 'c0'.repeat(32),
    allowSimulated: true,
    requireCrl,
    environment: 'local',
    state: 'none',
  })
  connection.close()
  const failed = checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
  return { failed, notes }
}

describe('a router that is to get secrets', () => {
  const unbound = 'configuration: the router has the configuration none in force'

  test("is refused without AMD's revocation list, which its host can leave away, where one is required", async () => {
    const { failed } = await judge(true)
    expect(failed).toEqual(["revocation: AMD's revocation list is missing", unbound])
  })

  test('may come without the list where none is required, which is noted', async () => {
    expect(await judge(false)).toEqual({
      failed: [unbound],
      notes: [
        "revocation: AMD's revocation list was not checked, for none was given and the envelope brings none",
      ],
    })
  })
})
