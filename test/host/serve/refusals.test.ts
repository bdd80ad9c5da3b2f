import { describe, expect, test } from 'vitest'
import { findRefusals, type StartFacts } from '../../../src/host/serve/refusals.ts'
import { checkConfig } from '../../../src/protocol/config-rules.ts'
import type { RouterConfig } from '../../../src/protocol/config.ts'
import { makeTestAuthority } from '../../support/test-authority.ts'
import { TRUST_BUNDLE_URL } from '../../support/trust-bundle-url.ts'

function config(service: object = {}, provider: object = {}): RouterConfig {
  const nova = {
    base_url: 'https://nova.example/v1',
    api_key_env: 'NOVA_API_KEY',
    attestation: { adapter: 'none' },
    ...provider,
  }
  const check = checkConfig({
    service: {
      name: 'r',
      trust_bundle_url: TRUST_BUNDLE_URL,
      allow_simulated: true,
      allow_unattested: ['nova'],
      ...service,
    },
    providers: { nova },
    routes: [{ model_key: 'm', provider: 'nova', upstream_model: 'x', type: 'chat' }],
  })
  if (!check.ok) throw new Error(JSON.stringify(check.problems))
  return check.config
}

const OPTIONS = {
  config: '/etc/router.json',
  stateDir: '/var/lib/router',
  https: { host: '0.0.0.0', port: 8443 },
  http: { host: '127.0.0.1', port: 8080 },
  acmeHttp: { host: '0.0.0.0', port: 80 },
  workers: 1,
  drainSeconds: 30,
}

const RELEASE = { root_key: 'root.jwk', bundle: 'trust.json', manifest: 'manifest.jws' }

const SECRETS = { ADMIN_TOKEN: 'a-token-of-24-characters', NOVA_API_KEY: 'key' }

function refusals(changes: Partial<StartFacts> = {}): string[] {
  return findRefusals({
    options: OPTIONS,
    workers: 1,
    config: config(),
    usesStandin: false,
    secrets: { values: SECRETS, problems: [] },
    storage: 'durable-object',
    platform: 'simulated',
    hardware: false,
    configMode: 0o100_644,
    sealed: false,
    nodeOptions: [],
    tlsUnverified: false,
    ...changes,
  })
}

describe('production mode', () => {
  test('starts with nothing to refuse', () => {
    expect(refusals()).toEqual([])
  })

  test.each<[string, Partial<StartFacts>, string]>([
    [
      'a configuration for local mode',
      { config: config({ mode: 'local' }) },
      'service.mode: is "local"; leave it out, or use "npm start" for a local stack',
    ],
    [
      'simulated evidence',
      { config: config({ allow_simulated: false, release: RELEASE }), platform: 'configfs-tsm' },
      'service.allow_simulated: is not set, and this machine has no SEV-SNP reports (/sys/kernel/config/tsm/report)',
    ],
    [
      'a debugger, through which anybody can read its memory',
      { nodeOptions: ['--max-old-space-size=4096', '--inspect=0.0.0.0:9229'] },
      'NODE_OPTIONS: --inspect opens the memory of the router, its keys and prompts, to others',
    ],
    [
      'a debugger by its other name',
      { nodeOptions: ['--inspect_brk'] },
      'NODE_OPTIONS: --inspect-brk opens the memory of the router, its keys and prompts, to others',
    ],
    [
      'a log of the keys of its connections',
      { nodeOptions: ['--tls-keylog=/tmp/keys'] },
      'NODE_OPTIONS: --tls-keylog opens the memory of the router, its keys and prompts, to others',
    ],
    [
      'snapshots of its memory',
      { nodeOptions: ['--heapsnapshot-signal', 'SIGUSR2'] },
      'NODE_OPTIONS: --heapsnapshot-signal opens the memory of the router, its keys and prompts, to others',
    ],
    [
      'TLS without certificates',
      { tlsUnverified: true },
      'NODE_TLS_REJECT_UNAUTHORIZED: is "0", and anybody could answer in place of the services that verification needs',
    ],
    [
      'an unattested provider that is not named',
      { config: config({ allow_unattested: [] }) },
      'providers.nova.attestation: is "none" in production mode; name the provider in service.allow_unattested to accept it',
    ],
    [
      'a provider over plain HTTP',
      { config: config({}, { base_url: 'http://nova.example/v1' }) },
      'providers.nova.base_url: must be https in production mode unless it is a loopback address',
    ],
    [
      'a missing provider key',
      { secrets: { values: { ADMIN_TOKEN: SECRETS.ADMIN_TOKEN }, problems: [] } },
      'providers.nova.api_key_env: the secret NOVA_API_KEY is missing',
    ],
    [
      'a missing admin token',
      { secrets: { values: { NOVA_API_KEY: 'key' }, problems: [] } },
      'ADMIN_TOKEN: is missing; set it, or ADMIN_TOKEN_FILE',
    ],
    [
      'an admin token that can be guessed',
      { secrets: { values: { ...SECRETS, ADMIN_TOKEN: 'secret' }, problems: [] } },
      'ADMIN_TOKEN: is shorter than 24 characters',
    ],
    [
      'an admin token of two lines',
      {
        secrets: {
          values: { ...SECRETS, ADMIN_TOKEN: 'a-token-of-24-\ncharacters' },
          problems: [],
        },
      },
      'ADMIN_TOKEN: has a space, a line break or another character that no bearer token may have',
    ],
    [
      'an admin token of several words',
      {
        secrets: {
          values: { ...SECRETS, ADMIN_TOKEN: 'correct horse battery staple' },
          problems: [],
        },
      },
      'ADMIN_TOKEN: has a space, a line break or another character that no bearer token may have',
    ],
    [
      'a provider key of two lines',
      { secrets: { values: { ...SECRETS, NOVA_API_KEY: 'first\nsecond' }, problems: [] } },
      'providers.nova.api_key_env: the variable NOVA_API_KEY has a line break or another character that no header carries',
    ],
    [
      'a provider key that is not ASCII',
      { secrets: { values: { ...SECRETS, NOVA_API_KEY: 'schlüssel' }, problems: [] } },
      'providers.nova.api_key_env: the variable NOVA_API_KEY has a line break or another character that no header carries',
    ],
    [
      'several workers on Durable Objects',
      { workers: 2 },
      '--workers: 2 processes need STORAGE=sqlite or STORAGE=postgres; files of Durable Objects have one writer',
    ],
    [
      'PostgreSQL without an address',
      { storage: 'postgres' },
      'DATABASE_URL: is missing; STORAGE=postgres needs it, or DATABASE_URL_FILE',
    ],
    [
      'the address of another database',
      {
        storage: 'postgres',
        secrets: { values: { ...SECRETS, DATABASE_URL: 'mysql://u:hunter2@db/x' }, problems: [] },
      },
      'DATABASE_URL: is not an address of PostgreSQL: postgres://<user>:<password>@<host>/<database>',
    ],
    [
      'an unknown engine',
      { storage: 'd1' },
      'STORAGE: is "d1"; it can be "durable-object" or "sqlite" or "postgres"',
    ],
    [
      'plain HTTP on other than loopback',
      { options: { ...OPTIONS, http: { host: '0.0.0.0', port: 80 } } },
      '--http: 0.0.0.0:80 is not on loopback; plain HTTP would show prompts to the network',
    ],
    [
      'a configuration that every user may write',
      { configMode: 0o100_666 },
      '--config: every user may write /etc/router.json, and so send prompts anywhere: chmod o-w it',
    ],
    [
      'an authority without domains',
      { config: config({ tls: { acme_directory: 'https://ca.example/directory' } }) },
      'service.tls.domains: is needed with acme_directory',
    ],
    [
      'an authority beside a chain file',
      {
        config: config({
          tls: { acme_directory: 'https://ca.example/', domains: ['r.example'], chain_file: 'c' },
        }),
      },
      'service.tls.chain_file: cannot be combined with acme_directory',
    ],
    [
      'an authority over plain HTTP',
      { config: config({ tls: { acme_directory: 'http://ca.example/', domains: ['r.example'] } }) },
      'service.tls.acme_directory: must be https',
    ],
    [
      'an authority whose name only begins like a loopback address',
      {
        config: config({
          tls: { acme_directory: 'http://127.evil.example/', domains: ['r.example'] },
        }),
      },
      'service.tls.acme_directory: must be https',
    ],
    [
      'a machine without a release, where its reports are real',
      { platform: 'configfs-tsm', hardware: true, config: config({ allow_simulated: false }) },
      'service.release: is needed in production mode',
    ],
  ])('refuses %s', (_what, changes, message) => {
    expect(refusals(changes)).toEqual([message])
  })

  test('tells everything that is wrong at once', () => {
    const found = refusals({
      secrets: { values: {}, problems: ['NOVA_API_KEY_FILE: /run/key is empty'] },
      workers: 2,
    })
    expect(found).toHaveLength(4)
  })
})

describe('a data disk', () => {
  const withDisk = { config: config({ data_disk: true, unseal: undefined }) }
  const guest = { ...OPTIONS, sealed: true, dataDisk: '/dev/cmr-data', volume: '/run/cmr/volume' }

  test('is opened in a guest alone', () => {
    expect(refusals(withDisk)).toEqual([
      'service.data_disk: only the guest image has a data disk to open',
    ])
  })

  test('needs its secret, and is for the embedded ledger', () => {
    const before = { ...withDisk, options: guest }
    expect(refusals(before)).toEqual(['DATA_DISK_KEY: is missing; service.data_disk needs it'])
    const values = { ...SECRETS, DATA_DISK_KEY: 'ab', DATABASE_URL: 'postgres://127.0.0.1/db' }
    expect(refusals({ ...before, storage: 'postgres', secrets: { values, problems: [] } })).toEqual(
      ['service.data_disk: holds the embedded ledger, and the ledger is in postgres'],
    )
  })
})

test('a sealed router takes no configuration in which an address is filled in, for which no document could be', () => {
  const sealed = { sealed: true, secrets: { values: {}, problems: [] } }
  const unseal = { operator_key: { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) } }
  const facts = { ...sealed, config: config({ unseal }) }
  expect(refusals(facts)).toEqual([])
  expect(refusals({ ...facts, usesStandin: true })).toEqual([
    '--sealed: the address of standin.localhost is filled in at the start, so no document would be for this configuration; give the provider an address of its own',
  ])
  expect(refusals({ usesStandin: true })).toEqual([])
})

describe('the way to the database', () => {
  const guest = { ...OPTIONS, sealed: true }
  const at = (address: string, service: object = {}, options: StartFacts['options'] = guest) =>
    refusals({
      options,
      config: config(service),
      storage: 'postgres',
      secrets: { values: { ...SECRETS, DATABASE_URL: address }, problems: [] },
    })
  const MISSING =
    'service.database_ca: is missing; a guest trusts no database beyond loopback without it'
  const ONE_HOST = 'DATABASE_URL: service.database_ca needs the name of one host'

  test('leaves a guest by a measured authority alone', async () => {
    const { rootPem } = await makeTestAuthority()
    expect(at('postgres://u:p@db.example/x?sslmode=require')).toEqual([MISSING])
    expect(at('postgres://u:p@db.example/x', { database_ca: rootPem })).toEqual([])
    expect(at('postgres://u:p@127.0.0.1:5432/x')).toEqual([])
    expect(at('postgres://u:p@localhost/x')).toEqual([])
    expect(at('postgres://u:p@db.example/x', {}, OPTIONS)).toEqual([])
  })

  test.each([
    'postgres://u:p@127.0.0.1,db.example/x',
    'postgres://u@127.0.0.1@db.example/x',
    'postgres://u@a,db.example@127.0.0.1/x',
    'postgres:///x',
    'postgres://%2Fvar%2Frun/x',
  ])('is not taken for loopback, nor for one host, at %s', async (address) => {
    const { rootPem } = await makeTestAuthority()
    expect(at(address)).toEqual([MISSING])
    expect(at(address, { database_ca: rootPem })).toEqual([ONE_HOST])
  })

  test('needs certificates of authorities', async () => {
    const authority = await makeTestAuthority()
    const { certPem } = await authority.issue('db.example')
    const address = 'postgres://u:p@db.example/x'
    expect(at(address, { database_ca: `${authority.rootPem}\n${certPem}` })).toEqual([
      'service.database_ca: has a certificate that is not of a certificate authority',
    ])
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'
    expect(at(address, { database_ca: broken })).toEqual([
      'service.database_ca: has a certificate that is not of a certificate authority',
    ])
  })
})
