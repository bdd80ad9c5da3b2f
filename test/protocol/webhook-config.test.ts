import { describe, expect, test } from 'vitest'
import {
  webhookProblems,
  webhookSecretNames,
  webhooksSchema,
} from '../../src/protocol/webhook-config.ts'

const config = (url: string, allowed = ['hooks.example']) =>
  webhooksSchema.parse({
    allowed_hosts: allowed,
    endpoints: { ops: { url, secret_env: 'OPS_SECRET' } },
  })

const reasons = (url: string, mode: 'production' | 'local', allowed?: string[]) =>
  webhookProblems(config(url, allowed), mode).map(({ path, reason }) => `${path}: ${reason}`)

describe('a webhook of the configuration', () => {
  const PATH = 'service.webhooks.endpoints.ops.url'
  test.each([
    ['https://hooks.example/in', 'production', []],
    ['https://other.example/in', 'production', ['names a host that is not in allowed_hosts']],
    [
      'https://hooks.example.evil.example/',
      'production',
      ['names a host that is not in allowed_hosts'],
    ],
    ['http://hooks.example/in', 'production', ['must be https']],
    ['http://hooks.example/in', 'local', ['must be https']],
    ['https://user:pass@hooks.example/', 'production', ['must have no user, password or fragment']],
  ] as const)('%s in %s mode: %j', (url, mode, expected) => {
    expect(reasons(url, mode)).toEqual(expected.map((reason) => `${PATH}: ${reason}`))
  })

  test('may be on the machine itself in local mode alone', () => {
    const url = 'http://127.0.0.1:8080/in'
    expect(reasons(url, 'local', ['127.0.0.1'])).toEqual([])
    expect(reasons(url, 'production', ['127.0.0.1'])).toEqual([`${PATH}: must be https`])
  })

  test('is named in a problem as every other member is', () => {
    const endpoint = { url: 'http://hooks.example/in', secret_env: 'OPS_SECRET' }
    const { endpoints, ...rest } = config(endpoint.url)
    const named = { ...rest, endpoints: { ...endpoints, 'ops.eu-1': endpoint } }
    expect(webhookProblems(named, 'production').map(({ path }) => path)).toEqual([
      PATH,
      'service.webhooks.endpoints["ops.eu-1"].url',
    ])
  })

  test('names the variable of its secret', () => {
    expect(webhookSecretNames(config('https://hooks.example/'))).toEqual(['OPS_SECRET'])
    expect(webhookSecretNames(undefined)).toEqual([])
  })
})
