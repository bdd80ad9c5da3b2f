import type { Platform } from '../../protocol/boot.ts'
import { formatPath, type ConfigProblem } from '../../protocol/config-problem.ts'
import type { Mode, RouterConfig } from '../../protocol/config.ts'
import { pinsNoOs } from '../../protocol/provider-policy.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'

/** The environment in which a configuration is to be used. */
export interface StartupEnv {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: Platform
  /** The mode in which the program was started. */
  readonly mode: Mode
  /** Null: the router is sealed and has no secrets yet. */
  readonly adminToken: string | null
}

/**
 * Finds the problems that prevent a configuration from being used. The mode is that of the program; no configuration
 * changes it. Every exception from production's rules must be named in the configuration; local mode has none of these
 * rules.
 */
export function findStartProblems(config: RouterConfig, startup: StartupEnv): ConfigProblem[] {
  if (config.service.mode !== startup.mode) return [otherMode(startup.mode)]
  const webhooks = startup.adminToken === null ? [] : unusableWebhookSecrets(config, startup.env)
  if (startup.mode === 'local') return webhooks
  return [
    ...relativeTrustBundle(config),
    ...webhooks,
    ...unattestedProviders(config),
    ...unpinnedProviders(config),
    ...plainProviders(config),
    ...(startup.adminToken === null ? sealedForEver(config) : unusableApiKeys(config, startup.env)),
    ...simulatedPlatform(config, startup.platform),
    ...missingRelease(config, startup.platform),
  ]
}

/** Behind a load balancer or proxy, the router cannot know the address that its clients use. */
function relativeTrustBundle({ service }: RouterConfig): ConfigProblem[] {
  const { trust_bundle_url: address } = service
  if (address === undefined) {
    const reason =
      'is needed in production mode: where clients find the trust bundle, such as "https://router.example/.well-known/trust.json"'
    return [{ path: 'service.trust_bundle_url', reason }]
  }
  const { protocol, hostname } = new URL(address)
  if (protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname))) return []
  const reason = 'must be https in production mode unless it is a loopback address'
  return [{ path: 'service.trust_bundle_url', reason }]
}

function sealedForEver({ service }: RouterConfig): ConfigProblem[] {
  if (service.unseal !== undefined) return []
  return [{ path: 'service.unseal', reason: 'is needed by a router that starts sealed' }]
}

function otherMode(started: StartupEnv['mode']): ConfigProblem {
  return { path: 'service.mode', reason: OTHER_MODE[started] }
}

const OTHER_MODE: Readonly<Record<StartupEnv['mode'], string>> = {
  production: 'is "local", and this router runs in production mode: leave it out',
  local: 'is "production", and this is a local stack: set "local", or use "npm run serve"',
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

/** Hardware evidence proves nothing about a workload if the operating system below it is not pinned. */
function unpinnedProviders({ service, providers }: RouterConfig): ConfigProblem[] {
  return Object.entries(providers)
    .filter(
      ([name, { attestation }]) =>
        pinsNoOs(attestation) && !service.allow_unpinned_os.includes(name),
    )
    .map(([name]) => ({
      path: formatPath(['providers', name, 'attestation', 'allowed_measurements']),
      reason:
        'is missing, and so is allowed_os_image_hashes: an unknown operating system speaks for the workload; pin it, or name the provider in service.allow_unpinned_os',
    }))
}

/** Prompts cross the network to these addresses; loopback does not leave the machine. */
function plainProviders({ providers }: RouterConfig): ConfigProblem[] {
  return Object.entries(providers)
    .filter(([, { base_url: address }]) => {
      const { protocol, hostname } = new URL(address)
      return protocol === 'http:' && !isLoopbackHost(hostname)
    })
    .map(([name]) => ({
      path: formatPath(['providers', name, 'base_url']),
      reason: 'must be https in production mode unless it is a loopback address',
    }))
}

/**
 * Characters that a header can carry. A secret with any other character, such as a line break, would make every request
 * fail.
 */
const HEADER_TEXT = /^[\x20-\x7e]*$/

function unusableApiKeys({ providers }: RouterConfig, env: StartupEnv['env']): ConfigProblem[] {
  return Object.entries(providers).flatMap(([name, { api_key_env: variable }]) => {
    if (variable === undefined) return []
    const path = formatPath(['providers', name, 'api_key_env'])
    const key = env[variable]
    if (!key) return [{ path, reason: `the secret ${variable} is missing` }]
    if (HEADER_TEXT.test(key)) return []
    const reason = `the variable ${variable} has a line break or another character that no header carries`
    return [{ path, reason }]
  })
}

/** A signing secret as Standard Webhooks has it: 24 to 64 bytes. */
const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/

function unusableWebhookSecrets(
  { service }: RouterConfig,
  env: StartupEnv['env'],
): ConfigProblem[] {
  const endpoints = Object.entries(service.webhooks?.endpoints ?? {})
  return endpoints.flatMap(([name, { secret_env: variable }]) => {
    const secret = env[variable]
    const path = formatPath(['service', 'webhooks', 'endpoints', name, 'secret_env'])
    if (!secret) return [{ path, reason: `the secret ${variable} is missing` }]
    const usable = WEBHOOK_SECRET.test(secret) && secret.slice('whsec_'.length).length % 4 === 0
    const reason = `the variable ${variable} must be "whsec_" and the base64 of 24 to 64 bytes`
    return usable ? [] : [{ path, reason }]
  })
}

function simulatedPlatform(
  { service }: RouterConfig,
  platform: StartupEnv['platform'],
): ConfigProblem[] {
  if (platform !== 'simulated' || service.allow_simulated) return []
  const reason = 'is not set, and the platform is a simulated one'
  return [{ path: 'service.allow_simulated', reason }]
}

/** A temporary root key proves nothing about a release, so it is only for simulated platforms. */
function missingRelease(
  { service }: RouterConfig,
  platform: StartupEnv['platform'],
): ConfigProblem[] {
  if (service.release !== undefined || platform === 'simulated') return []
  return [{ path: 'service.release', reason: 'is needed in production mode' }]
}
