import { formatPath, type ConfigProblem } from '../../protocol/config-rules.ts'
import type { RouterConfig } from '../../protocol/config.ts'
import type { StartupEnv } from './load-config.ts'

/**
 * What production mode refuses to start with. Every exception is one the operator wrote down by name; local mode
 * has none of these rules.
 */
export function findStartProblems(config: RouterConfig, around: StartupEnv): ConfigProblem[] {
  if (config.service.mode === 'local') return []
  return [
    ...unattestedProviders(config),
    ...plainProviders(config),
    ...missingApiKeys(config, around.env),
    ...simulatedPlatform(config, around.platform),
    ...missingRelease(config, around.platform),
  ]
}

function unattestedProviders({ service, providers }: RouterConfig): ConfigProblem[] {
  return Object.entries(providers)
    .filter(([name, { attestation }]) => {
      return attestation.adapter === 'none' && !service.allow_unattested.includes(name)
    })
    .map(([name]) => ({
      path: formatPath(['providers', name, 'attestation']),
      reason:
        'is "none" in production mode; name the provider in service.allow_unattested to accept it',
    }))
}

/** Prompts cross the network to these addresses. Loopback stays on the machine. */
function plainProviders({ providers }: RouterConfig): ConfigProblem[] {
  return Object.entries(providers)
    .filter(([, { base_url: address }]) => {
      const { protocol, hostname } = new URL(address)
      return protocol === 'http:' && !LOOPBACK.test(hostname)
    })
    .map(([name]) => ({
      path: formatPath(['providers', name, 'base_url']),
      reason: 'must be https in production mode unless it is a loopback address',
    }))
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

function missingApiKeys({ providers }: RouterConfig, env: StartupEnv['env']): ConfigProblem[] {
  return Object.entries(providers).flatMap(([name, { api_key_env: variable }]) =>
    variable === undefined || env[variable]
      ? []
      : [
          {
            path: formatPath(['providers', name, 'api_key_env']),
            reason: `the environment has no variable ${variable}`,
          },
        ],
  )
}

function simulatedPlatform(
  { service }: RouterConfig,
  platform: StartupEnv['platform'],
): ConfigProblem[] {
  if (platform !== 'simulated' || service.allow_simulated) return []
  const reason =
    'is "production" on the simulated platform; set service.allow_simulated to accept it'
  return [{ path: 'service.mode', reason }]
}

/** A throw-away root proves nothing about a release, so it is for stacks that prove nothing anyway. */
function missingRelease(
  { service }: RouterConfig,
  platform: StartupEnv['platform'],
): ConfigProblem[] {
  if (service.release !== undefined || platform === 'simulated') return []
  return [{ path: 'service.release', reason: 'is needed in production mode' }]
}
