import { describe, expect, it } from 'vitest'
import { checkConfig } from '../../src/protocol/config-rules.ts'

type Json = Record<string, unknown>

const NOVA: Json = { base_url: 'https://nova.example/v1', attestation: { adapter: 'none' } }

function route(change: Json = {}): Json {
  return { model_key: 'glm-5', provider: 'nova', upstream_model: 'x/y', type: 'chat', ...change }
}

function config(change: Json = {}): Json {
  return { service: { name: 'r' }, providers: { nova: NOVA }, routes: [route()], ...change }
}

function problems(json: unknown): unknown {
  const check = checkConfig(json)
  return check.ok ? [] : check.problems
}

const PRICE = { currency: 'eur', input_per_mtok: 1, output_per_mtok: 2 }

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

/** What is wrong, the configuration, the path told and the reason told. */
const CASES: readonly (readonly [string, Json, string, string])[] = [
  [
    'a missing required member',
    config({ service: {} }),
    'service.name',
    'Invalid input: expected string, received undefined',
  ],
  ...[
    '',
    '/etc/ssl/ca.pem',
    `${CERTIFICATE} and more`,
    `${CERTIFICATE}-----BEGIN CERTIFICATE-----`,
  ].map((text): (typeof CASES)[number] => [
    `authorities of the database that are no certificates (${text.slice(-12)})`,
    config({ service: { name: 'r', database_ca: text } }),
    'service.database_ca',
    'give certificates in PEM form, and nothing else',
  ]),
  ...['ADMIN_TOKEN', 'ADMIN_TOKEN_FILE', 'DATABASE_URL', 'DATA_DISK_KEY'].map(
    (variable): (typeof CASES)[number] => [
      `a secret of the router's own as a provider's key (${variable})`,
      config({ providers: { nova: { ...NOVA, api_key_env: variable } } }),
      'providers.nova.api_key_env',
      `${variable} is a secret of the router's own, not a provider's key`,
    ],
  ),
  ['an unknown key', config({ colour: 'red' }), '(the whole file)', 'Unrecognized key: "colour"'],
  [
    'an unknown key deep inside',
    config({ routes: [route({ pricing: { ...PRICE, vat: 1 } })] }),
    'routes[0].pricing',
    'Unrecognized key: "vat"',
  ],
  ...['dstack', 'aci'].map((adapter): (typeof CASES)[number] => [
    `an OS pinned twice (${adapter})`,
    config({
      providers: {
        nova: {
          ...NOVA,
          attestation: {
            adapter,
            allowed_compose_hashes: ['ab'.repeat(32)],
            allowed_measurements: ['ab'.repeat(192)],
            allowed_os_image_hashes: ['ab'.repeat(32)],
          },
        },
      },
    }),
    'providers.nova.attestation',
    'at most one of allowed_measurements and allowed_os_image_hashes can be given',
  ]),
  [
    'a name with other characters',
    config({ routes: [route({ model_key: 'a/b' })] }),
    'routes[0].model_key',
    'only letters, digits, ".", "_" and "-"',
  ],
  [
    'a model key named auto',
    config({ routes: [route({ model_key: 'auto' })] }),
    'routes[0].model_key',
    '"auto" is a reserved name',
  ],
  [
    'a region named auto',
    config({ routes: [route({ region: 'auto' })] }),
    'routes[0].region',
    '"auto" is a reserved name',
  ],
  [
    'a provider named auto',
    config({ providers: { nova: NOVA, auto: NOVA } }),
    'providers.auto',
    '"auto" is a reserved name',
  ],
  [
    'a name that is both provider and region',
    config({ routes: [route({ region: 'nova' })] }),
    'routes[0].region',
    '"nova" is also the name of a provider',
  ],
  [
    'a provider that is not there',
    config({ routes: [route({ provider: 'nobody' })] }),
    'routes[0].provider',
    'no provider is named "nobody"',
  ],
  [
    'a triple given twice',
    config({ routes: ['eu', 'us', 'eu'].map((region) => route({ region })) }),
    'routes[2]',
    'the same region, provider and model_key as routes[0]',
  ],
  [
    'one model key with two types',
    config({
      providers: { nova: NOVA, vega: NOVA },
      routes: [route(), route({ provider: 'vega', type: 'transcription' })],
    }),
    'routes[1].type',
    'another route of "glm-5" has type "chat"',
  ],
  [
    'a provider with and without region for one key',
    config({ routes: [route({ region: 'eu' }), route()] }),
    'routes[1].region',
    '"nova/glm-5" also has a route with a region',
  ],
  [
    'a provider without and with region for one key',
    config({ routes: [route(), route({ region: 'eu' })] }),
    'routes[1].region',
    '"nova/glm-5" also has a route without a region',
  ],
  [
    'a price in usd without a rate',
    config({ routes: [route({ pricing: { ...PRICE, currency: 'usd' } })] }),
    'service.usd_eur',
    'is needed because a route is priced in usd',
  ],
  [
    'a price without an amount',
    config({ routes: [route({ pricing: { currency: 'eur' } })] }),
    'routes[0].pricing',
    'names a currency and no price',
  ],
  [
    'half a token price',
    config({ routes: [route({ pricing: { currency: 'eur', input_per_mtok: 1 } })] }),
    'routes[0].pricing',
    'output_per_mtok is missing',
  ],
  [
    'token and unit prices at once',
    config({
      routes: [route({ pricing: { ...PRICE, billing_unit: 'request', unit_amount: 1 } })],
    }),
    'routes[0].pricing',
    'has token prices and a unit price; give one kind',
  ],
  [
    'a unit price on a chat route',
    config({
      routes: [route({ pricing: { currency: 'eur', billing_unit: 'request', unit_amount: 1 } })],
    }),
    'routes[0].pricing',
    'unit prices are for transcription routes',
  ],
  [
    'a unit without its amount',
    config({
      routes: [
        route({ type: 'transcription', pricing: { currency: 'eur', billing_unit: 'request' } }),
      ],
    }),
    'routes[0].pricing',
    'billing_unit needs unit_amount',
  ],
  [
    'a default effort that is not offered',
    config({ routes: [route({ reasoning: { default_effort: 'high', efforts: { off: {} } } })] }),
    'routes[0].reasoning.default_effort',
    '"high" is not among efforts',
  ],
  [
    'an approved selector that matches nothing',
    config({ service: { name: 'r', auto: ['glm-5', 'eu/glm-5'] } }),
    'service.auto[1]',
    'no route matches "eu/glm-5"',
  ],
  [
    'an approved selector of another type',
    config({
      service: { name: 'r', auto: ['nova/w'] },
      routes: [route({ model_key: 'w', type: 'transcription' })],
    }),
    'service.auto[0]',
    '"nova/w" is not a chat model',
  ],
  [
    'an exception for nobody',
    config({ service: { name: 'r', allow_unattested: ['nobody'] } }),
    'service.allow_unattested[0]',
    'no provider is named "nobody"',
  ],
  [
    'another exception for nobody',
    config({ service: { name: 'r', allow_unpinned_os: ['nobody'] } }),
    'service.allow_unpinned_os[0]',
    'no provider is named "nobody"',
  ],
  [
    'an address with a password',
    config({ providers: { nova: { ...NOVA, base_url: 'https://u:p@nova.example/v1' } } }),
    'providers.nova.base_url',
    'must have no user, password, query or fragment',
  ],
  [
    'a forwarded member that the router sets itself',
    config({ routes: [route({ forward: ['min_p', 'messages'] })] }),
    'routes[0].forward[1]',
    '"messages" is set by the router itself',
  ],
  [
    'a forwarded member that may be meant as the constraints of a request',
    config({ routes: [route({ forward: ['attestations'] })] }),
    'routes[0].forward[0]',
    '"attestations" may be meant as "attestation", so requests with it are refused',
  ],
  [
    'a forwarded member that is the salt of the route',
    config({ routes: [route({ forward: ['salt'], cache_salt_field: 'salt' })] }),
    'routes[0].forward[0]',
    '"salt" is set by the router itself',
  ],
  ...[
    '203.0.113.7',
    '2001:db8::1',
    'https://router.example',
    'router.example:8443',
    'router.example.',
    'münchen.example',
    'a,OU=b',
    'a.*.example',
    '-a.example',
    `${'a'.repeat(64)}.example`,
    '',
  ].map((domain): (typeof CASES)[number] => [
    `"${domain.slice(-24)}" as a domain`,
    config({ service: { name: 'r', tls: { domains: ['router.example', domain] } } }),
    'service.tls.domains[1]',
    'must be a domain name such as "router.example"',
  ]),
  [
    'a wildcard that an authority is to certify by HTTP-01',
    config({
      service: {
        name: 'r',
        tls: { domains: ['*.example'], acme_directory: 'https://ca.example/' },
      },
    }),
    'service.tls.domains[0]',
    'is a wildcard, which no authority certifies by HTTP-01',
  ],
  [
    'an origin with a path',
    config({ service: { name: 'r', cors_origins: ['https://a.example/'] } }),
    'service.cors_origins[0]',
    'must be "*" or an origin such as "https://app.example"',
  ],
]

describe('checkConfig', () => {
  it('accepts the smallest configuration and fills in the defaults', () => {
    const check = checkConfig(config())
    expect(check).toMatchObject({ ok: true, config: { service: { mode: 'production' } } })
  })

  it('accepts domains as certificates have them, wildcards of a chain that is handed in among them', () => {
    const domains = [
      'router.example',
      'Router-2.xn--mnchen-3ya.example',
      'localhost',
      '*.a.example',
    ]
    expect(problems(config({ service: { name: 'r', tls: { domains } } }))).toEqual([])
  })

  it('accepts every selector form among the approved ones', () => {
    const auto = ['glm-5', 'eu/glm-5', 'nova/glm-5', 'eu/nova/glm-5']
    const json = config({ service: { name: 'r', auto }, routes: [route({ region: 'eu' })] })
    expect(problems(json)).toEqual([])
  })

  it.each(CASES)('refuses %s and says where and why', (_what, json, path, reason) => {
    expect(problems(json)).toEqual([{ path, reason }])
  })

  it('reports all problems together', () => {
    const json = config({ routes: [route({ provider: 'a' }), route({ region: 'auto' })] })
    expect(problems(json)).toHaveLength(2)
  })
})
