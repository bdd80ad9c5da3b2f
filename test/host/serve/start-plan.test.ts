import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { planReload, planStart } from '../../../src/host/serve/start-plan.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'
import { TRUST_BUNDLE_URL } from '../../support/trust-bundle-url.ts'

const OPERATOR_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
}

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cmr-start-plan-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** The options of a router that was started sealed, whose file has providers of these names now. */
function sealedWith(...names: readonly string[]) {
  const config = join(directory, 'router.json')
  const providers = names.map((name) => {
    const provider = { base_url: 'https://x.example/v1', attestation: { adapter: 'none' } }
    return [name, { ...provider, api_key_env: `${name.toUpperCase()}_KEY` }] as const
  })
  const service = {
    name: 'r',
    trust_bundle_url: TRUST_BUNDLE_URL,
    allow_simulated: true,
    allow_unattested: names,
    unseal: { operator_key: OPERATOR_KEY },
  }
  const route = { model_key: 'm', provider: names[0], upstream_model: 'x', type: 'chat' }
  const json = { service, providers: Object.fromEntries(providers), routes: [route] }
  writeFileSync(config, JSON.stringify(json))
  const loopback = { host: '127.0.0.1', port: 0 }
  const addresses = { http: loopback, https: loopback, acmeHttp: loopback }
  return { ...addresses, config, stateDir: directory, drainSeconds: 1, sealed: true }
}

const GIVEN = { ADMIN_TOKEN: 'a-token-of-the-operator-1', NOVA_KEY: 'n', VEGA_KEY: 'v' }

describe('a reload of a router that was unsealed', () => {
  test('goes by the secrets of its document, also where the configuration needs one of them no longer', () => {
    expect(planReload(sealedWith('nova'), {}, GIVEN).providerSecrets).toEqual({ NOVA_KEY: 'n' })
    const again = planReload(sealedWith('nova'), {}, GIVEN)
    const secrets = planReload(sealedWith('nova', 'vega'), {}, again.given).providerSecrets
    expect(secrets).toEqual({ NOVA_KEY: 'n', VEGA_KEY: 'v' })
  })

  test('is refused where the configuration needs one that the document did not have', () => {
    const reload = () => planReload(sealedWith('nova', 'orion'), {}, GIVEN)
    expect(reload).toThrow(StartError)
    expect(reload).toThrow('providers.orion.api_key_env: the secret ORION_KEY is missing')
  })

  test('leaves a document with an unknown name refused', () => {
    const take = () => planStart(sealedWith('nova'), {}, GIVEN)
    expect(take).toThrow(StartError)
    expect(take).toThrow('VEGA_KEY: the configuration asks for no such secret')
  })
})

describe('a start with the address of a database', () => {
  const DATABASE_URL = 'postgres://router@127.0.0.1/ledger'
  const start = (environment: Readonly<Record<string, string>>, workers = 1) =>
    planStart(
      { ...sealedWith('nova'), sealed: false, workers },
      { ADMIN_TOKEN: GIVEN.ADMIN_TOKEN, NOVA_KEY: 'n', DATABASE_URL, ...environment },
    )

  test('is refused where no engine is named, because an empty ledger on this machine would take its place', () => {
    for (const workers of [1, 2]) {
      const unnamed = () => start({}, workers)
      expect(unnamed).toThrow(StartError)
      expect(unnamed).toThrow(
        'production mode refuses to start:\n  STORAGE: is not set, and DATABASE_URL is; set STORAGE=postgres to use that database',
      )
    }
  })

  test('uses the engine that is named, whichever it is', () => {
    const secret = DATABASE_URL
    expect(start({ STORAGE: 'postgres' }).storage).toEqual({ engine: 'postgres', secret })
    expect(start({ STORAGE: 'durable-object' }).storage).toEqual({ engine: 'durable-object' })
  })
})
