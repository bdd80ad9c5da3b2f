import { describe, expect, it } from 'vitest'
import { HostInputError } from '../../../src/host/guest/host-input.ts'
import { planService } from '../../../src/host/guest/service-plan.ts'

const config = (mode?: string) =>
  JSON.stringify({
    service: { name: 'r', ...(mode === undefined ? {} : { mode }) },
    providers: { nova: { api_key_env: 'NOVA_API_KEY' } },
  })

describe('what a guest runs', () => {
  it.each([undefined, 'production'])(
    'is a router in production mode that starts sealed, with the mode %s',
    (mode) => {
      const { args, env, forwardTo, shown } = planService(config(mode))
      expect(args.slice(0, 4)).toEqual(['serve', '--sealed', '--https', '0.0.0.0:443'])
      expect([env, forwardTo, shown]).toEqual([{ JSON_CONSOLE: 'true' }, undefined, true])
    },
  )

  it('is nothing where the host hands over secrets to a guest in production mode', () => {
    expect(() => planService(config(), { secrets: '{"ADMIN_TOKEN": "seen"}' })).toThrow(
      new HostInputError(
        'the host handed over secrets; in production mode a guest takes them by a document of its operator only',
      ),
    )
  })

  it('is a rehearsal in local mode, with the secrets of the host', () => {
    const secrets = '{"NOVA_API_KEY": "k", "DATABASE_URL": "postgres://x"}'
    const plan = planService(config('local'), { secrets })
    expect(plan).toMatchObject({
      args: ['start'],
      env: { NOVA_API_KEY: 'k', STORAGE: 'postgres', DATABASE_URL: 'postgres://x' },
      forwardTo: 8788,
      shown: false,
    })
  })

  it('has a stand-in provider where the measured configuration allows simulation alone', () => {
    const simulated = JSON.stringify({ service: { allow_simulated: true } })
    const standin = JSON.stringify({ port: 9100, tls_port: 9101, identity: { root: {} } })
    expect(planService(simulated, { standin }).standin).toEqual({
      port: 9100,
      tlsPort: 9101,
      identity: '{"root":{}}',
    })
    expect(() => planService(config(), { standin })).toThrow(
      new HostInputError('a stand-in provider needs service.allow_simulated'),
    )
    for (const wrong of ['9100', '{', '{"port":80,"tls_port":9101,"identity":{}}']) {
      expect(() => planService(simulated, { standin: wrong })).toThrow(
        new HostInputError('the description of the stand-in provider is malformed'),
      )
    }
  })

  it.each(['{', '{}', config('none')])('is nothing without a mode that is known: %s', (text) => {
    expect(() => planService(text)).toThrow(
      new HostInputError('the configuration has no service of a known mode'),
    )
  })
})
