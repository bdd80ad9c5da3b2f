import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigRefused, loadConfig } from '../../../src/enclave/config/load-config.ts'
import type { StartupEnv } from '../../../src/enclave/config/start-rules.ts'
import { TRUST_BUNDLE_URL } from '../../support/trust-bundle-url.ts'

type Json = Record<string, unknown>

const REAL: StartupEnv = {
  env: {},
  platform: 'configfs-tsm',
  mode: 'production',
  adminToken: 'token',
}
const RELEASE = { root_key: 'root.jwk.json', bundle: 'trust.json', manifest: 'manifest.jws' }
const ATTESTED = { adapter: 'tinfoil', allowed_measurements: ['ab'.repeat(48)] }

interface Config {
  readonly service: Json
  readonly providers: Json
  readonly routes: readonly Json[]
}

function config(service: Json = {}, provider: Json = {}): Config {
  return {
    service: { name: 'r', trust_bundle_url: TRUST_BUNDLE_URL, release: RELEASE, ...service },
    providers: {
      nova: { base_url: 'https://nova.example/v1', attestation: ATTESTED, ...provider },
    },
    routes: [],
  }
}

async function load(content: string | Config, surroundings: StartupEnv = REAL) {
  const file = join(await mkdtemp(join(tmpdir(), 'cmr-config-')), 'config.json')
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return loadConfig(file, surroundings)
}

async function problems(content: string | Config, surroundings?: StartupEnv) {
  const error: unknown = await load(content, surroundings).catch((thrown: unknown) => thrown)
  if (!(error instanceof ConfigRefused)) throw new Error('not refused')
  return error.problems
}

const UNATTESTED = { attestation: { adapter: 'none' } }

const UNPINNED = {
  attestation: { adapter: 'dstack', allowed_compose_hashes: ['ab'.repeat(32)] },
}

const TRUST_BUNDLE_MISSING =
  'is needed in production mode: where clients find the trust bundle, such as "https://router.example/.well-known/trust.json"'
const PLAIN = 'must be https in production mode unless it is a loopback address'

const CASES: readonly (readonly [string, Config, StartupEnv, string, string])[] = [
  [
    'a provider without attestation',
    config({}, UNATTESTED),
    REAL,
    'providers.nova.attestation',
    'is "none" in production mode; name the provider in service.allow_unattested to accept it',
  ],
  [
    'a provider under an operating system that nobody pinned',
    config({}, UNPINNED),
    REAL,
    'providers.nova.attestation.allowed_measurements',
    'is missing, and so is allowed_os_image_hashes: an unknown operating system speaks for the workload; pin it, or name the provider in service.allow_unpinned_os',
  ],
  [
    'a trust bundle of no address',
    config({ trust_bundle_url: undefined }),
    REAL,
    'service.trust_bundle_url',
    TRUST_BUNDLE_MISSING,
  ],
  [
    'a trust bundle that anybody on the way could replace',
    config({ trust_bundle_url: 'http://router.example/trust.json' }),
    REAL,
    'service.trust_bundle_url',
    PLAIN,
  ],
  [
    'the simulated platform',
    config(),
    { ...REAL, platform: 'simulated' },
    'service.allow_simulated',
    'is not set, and the platform is a simulated one',
  ],
  [
    'a provider key that the environment lacks',
    config({}, { api_key_env: 'NOVA_API_KEY' }),
    { ...REAL, env: { NOVA_API_KEY: '' } },
    'providers.nova.api_key_env',
    'the secret NOVA_API_KEY is missing',
  ],
  [
    'a provider over plain HTTP',
    config({}, { base_url: 'http://nova.example/v1' }),
    REAL,
    'providers.nova.base_url',
    'must be https in production mode unless it is a loopback address',
  ],
  [
    'a machine without a release',
    config({ release: undefined }),
    REAL,
    'service.release',
    'is needed in production mode',
  ],
]

describe('the secret of a webhook', () => {
  const hooked = {
    ...config(),
    service: {
      ...config().service,
      webhooks: {
        allowed_hosts: ['hooks.example'],
        endpoints: { ops: { url: 'https://hooks.example/in', secret_env: 'OPS_SECRET' } },
      },
    },
  }
  const path = 'service.webhooks.endpoints.ops.secret_env'
  const good = `whsec_${Buffer.alloc(24, 1).toString('base64')}`

  it.each([
    [undefined, 'the secret OPS_SECRET is missing'],
    ['short', 'the variable OPS_SECRET must be "whsec_" and the base64 of 24 to 64 bytes'],
    [`${good}A`, 'the variable OPS_SECRET must be "whsec_" and the base64 of 24 to 64 bytes'],
  ])('keeps the configuration out of force where it is %s', async (secret, reason) => {
    const env = secret === undefined ? {} : { OPS_SECRET: secret }
    expect(await problems(hooked, { ...REAL, env })).toEqual([{ path, reason }])
  })

  it('is handed on by the name of the endpoint', async () => {
    const { webhookSecrets } = await load(hooked, { ...REAL, env: { OPS_SECRET: good } })
    expect(webhookSecrets).toEqual({ ops: good })
  })
})

describe('loadConfig', () => {
  it.each(CASES)('refuses %s in production mode', async (_what, json, around, path, reason) => {
    expect(await problems(json, around)).toEqual([{ path, reason }])
  })

  it.each(CASES)('takes %s in local mode', async (_what, json, around) => {
    const local = { ...json, service: { ...json.service, mode: 'local' } }
    expect(await load(local, { ...around, mode: 'local' })).toMatchObject({ providerApiKeys: {} })
  })

  it('does not let a configuration choose the mode', async () => {
    const unsafe = config({ mode: 'local' }, { ...UNATTESTED, base_url: 'http://nova.example/v1' })
    expect(await problems(unsafe)).toEqual([
      {
        path: 'service.mode',
        reason: 'is "local", and this router runs in production mode: leave it out',
      },
    ])
    expect(await problems(config(), { ...REAL, mode: 'local' })).toEqual([
      {
        path: 'service.mode',
        reason: 'is "production", and this is a local stack: set "local", or use "npm run serve"',
      },
    ])
  })

  it.each(['http://127.evil.example/v1', 'http://nova.localhost/v1', 'http://localhost.evil/v1'])(
    'takes %s for no loopback address',
    async (address) => {
      expect(await problems(config({}, { base_url: address }))).toEqual([
        {
          path: 'providers.nova.base_url',
          reason: 'must be https in production mode unless it is a loopback address',
        },
      ])
    },
  )

  it('takes what the operator allowed by name', async () => {
    const allowed = config({ allow_unattested: ['nova'], allow_simulated: true }, UNATTESTED)
    const loaded = await load(allowed, { ...REAL, platform: 'simulated' })
    expect(loaded.config.service.mode).toBe('production')
    const byImage = { ...UNPINNED.attestation, allowed_os_image_hashes: ['ab'.repeat(32)] }
    expect(await load(config({}, { attestation: byImage }), REAL)).toBeDefined()
    const named = await load(config({ allow_unpinned_os: ['nova'] }, UNPINNED), REAL)
    expect(named.config.service.allow_unpinned_os).toEqual(['nova'])
  })

  it('reads the keys that providers name from the environment', async () => {
    const json = config({}, { api_key_env: 'NOVA_API_KEY' })
    const { providerApiKeys } = await load(json, { ...REAL, env: { NOVA_API_KEY: 'k' } })
    expect(providerApiKeys).toEqual({ nova: 'k' })
  })

  it.each([
    ['text that is no JSON', '{', 'not JSON'],
    ['a member given twice', '{"service":{},"service":{}}', 'duplicate member name'],
  ])('refuses %s', async (_what, text, reason) => {
    expect(await problems(text)).toEqual([{ path: '(the whole file)', reason }])
  })

  it('refuses a file that is not there', async () => {
    await expect(loadConfig('/nowhere/config.json', REAL)).rejects.toThrow(
      'the configuration /nowhere/config.json cannot be used:\n  (the whole file): cannot be read (ENOENT)',
    )
  })
})
