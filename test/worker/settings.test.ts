import { describe, expect, test } from 'vitest'
import { configSchema } from '../../src/protocol/config.ts'
import type { LinkConfig, LinkState } from '../../src/protocol/link.ts'
import { LinkUnavailable } from '../../src/worker/link/link.ts'
import { SettingsSource } from '../../src/worker/settings.ts'

/** What a daemon has in force. */
interface Daemon {
  readonly kid: string
  readonly generation: number
  readonly name: string
}

/** A worker's settings, and the daemon that it asks; undefined: none answers. */
function open(first: Daemon) {
  let daemon: Daemon | undefined = first
  let loads = 0
  const running = () => {
    if (daemon === undefined) throw new LinkUnavailable('the enclave daemon cannot be reached')
    return daemon
  }
  const state = async (): Promise<LinkState> => {
    const { kid, generation } = running()
    const jwk = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y', kid, alg: 'ES256', use: 'sig' } as const
    return { thread: '', kid, generation, jwk, envelope_sha256: null }
  }
  const config = async (): Promise<LinkConfig> => {
    const { generation, name } = running()
    loads += 1
    const secrets = { admin_token: name, provider_api_keys: {}, webhook_secrets: {} }
    const text = { service: { name }, providers: {}, routes: [] }
    return { generation, config: configSchema.parse(text), configuration_sha256: name, secrets }
  }
  const source = new SettingsSource({ state, config }, () => {}, 'attested')
  return {
    now: (next: Daemon | undefined) => (daemon = next),
    nameInForce: async () => (await source.current()).config.service.name,
    loads: () => loads,
  }
}

describe('the settings of a worker', () => {
  test('are those of the daemon, read once for each of its configurations', async () => {
    const { now, nameInForce, loads } = open({ kid: 'a', generation: 1, name: 'first' })
    expect([await nameInForce(), await nameInForce()]).toEqual(['first', 'first'])
    now({ kid: 'a', generation: 2, name: 'second' })
    expect([await nameInForce(), await nameInForce()]).toEqual(['second', 'second'])
    expect(loads()).toBe(2)
  })

  test('are those of a restarted daemon, whose count of configurations begins anew', async () => {
    const { now, nameInForce } = open({ kid: 'a', generation: 1, name: 'first' })
    now({ kid: 'a', generation: 2, name: 'second' })
    expect(await nameInForce()).toBe('second')
    now(undefined)
    expect(await nameInForce()).toBe('second')
    // It was started with the second configuration, and has accepted a third since.
    now({ kid: 'b', generation: 2, name: 'third' })
    expect(await nameInForce()).toBe('third')
  })
})
