import { statSync } from 'node:fs'
import type { Platform } from '../../protocol/boot.ts'
import { checkConfig } from '../../protocol/config-rules.ts'
import type { RouterConfig } from '../../protocol/config.ts'
import { DATA_DISK_KEY, OWN_SECRETS } from '../../protocol/own-secrets.ts'
import {
  engineOfSecrets,
  isSelfHostedEngine,
  STORAGE_ENGINES,
  STORAGE_SECRETS,
} from '../../protocol/storage-engines.ts'
import { webhookSecretNames } from '../../protocol/webhook-config.ts'
import { carriersFor } from '../stack/carrier-plan.ts'
import { choosePlatform, hasReportInterface } from '../stack/platform.ts'
import { readRouterConfig, type RouterConfigFile } from '../stack/router-config.ts'
import type { StorageSettings } from '../stack/settings.ts'
import { StartError } from '../stack/start-error.ts'
import type { TlsSettings } from './certificates.ts'
import type { ServeOptions } from './options.ts'
import { findRefusals } from './refusals.ts'
import { readSecrets, type Secrets } from './secrets.ts'

/** Everything a start in production mode needs, checked. */
export interface Start {
  readonly options: ServeOptions
  /** Worker processes. */
  readonly workers: number
  /** Threads of the daemon beside its main thread that carry their calls; none: the main thread does. */
  readonly carriers: number
  readonly config: RouterConfigFile
  readonly platform: Platform
  readonly storage: StorageSettings
  /** Null: the router is sealed. */
  readonly adminToken: string | null
  /** The secrets of the document it was made from. */
  readonly given?: Readonly<Record<string, string>> | undefined
  /** Of the guest's data disk, where the configuration asks for one. */
  readonly dataDiskKey?: string | undefined
  /** Values of the variables that the configuration names. */
  readonly providerSecrets: Readonly<Record<string, string>>
}

type Environment = Readonly<Record<string, string | undefined>>

/** Those that the configuration asks for. */
function ownSecrets({ service }: RouterConfig): string[] {
  return service.data_disk ? [...OWN_SECRETS, DATA_DISK_KEY] : [...OWN_SECRETS]
}

/**
 * Reads the configuration and the secrets, for a start.
 * @param given the secrets of a document, for a router that was started sealed; before the first document it starts
 *   without
 * @param config the current configuration, where only the secrets are new: the file may have changed since
 * @throws StartError when there is a reason not to serve with them; the message lists all reasons
 */
export function planStart(
  options: ServeOptions,
  environment: Environment,
  given?: Readonly<Record<string, string>>,
  config: RouterConfigFile = readRouterConfig(options.config),
): Start {
  const variables = secretNames(config.config)
  const known = [...ownSecrets(config.config), ...variables]
  const secrets = given === undefined ? readSecrets(known, environment) : checkNames(given, known)
  const sealed = options.sealed === true && given === undefined
  const hardware = hasReportInterface()
  const platform = choosePlatform(config.config.service.allow_simulated, hardware)
  const workers = options.workers ?? config.config.service.workers
  const storage = environment['STORAGE'] || unnamedEngine(given ?? {}, secrets.values, workers)
  const refusals = findRefusals({
    options,
    workers,
    config: withRealAddresses(config),
    usesStandin: config.usesStandin,
    secrets,
    storage,
    platform,
    hardware,
    configMode: statSync(options.config).mode,
    sealed,
    nodeOptions: nodeOptions(environment),
    tlsUnverified: environment['NODE_TLS_REJECT_UNAUTHORIZED'] === '0',
  })
  if (refusals.length > 0) {
    const lines = refusals.map((refusal) => `\n  ${refusal}`)
    throw new StartError(`production mode refuses to start:${lines.join('')}`)
  }
  const { ADMIN_TOKEN: adminToken = '' } = secrets.values
  const present = variables.filter((name) => secrets.values[name] !== undefined)
  return {
    options,
    workers,
    carriers: carriersFor(workers, config.config.service.carriers),
    config,
    given,
    platform,
    storage: storageSettings(storage, secrets.values),
    adminToken: sealed ? null : adminToken,
    dataDiskKey: config.config.service.data_disk ? secrets.values[DATA_DISK_KEY] : undefined,
    providerSecrets: Object.fromEntries(present.map((name) => [name, secrets.values[name] ?? ''])),
  }
}

/** Those of the command line count for this process, those of the variable for all that it starts, too. */
function nodeOptions({ NODE_OPTIONS: given = '' }: Environment): string[] {
  return [...process.execArgv, ...given.split(/[\s"]+/)]
}

/**
 * The same for a reload. Of the secrets of a former document those count that the new configuration asks for: it was checked when it
 * came, and a provider may have been removed since.
 * @throws StartError when there is a reason not to serve with them; the message lists all reasons
 */
export function planReload(
  options: ServeOptions,
  environment: Environment,
  given: Start['given'],
): Start {
  if (given === undefined) return planStart(options, environment)
  const config = readRouterConfig(options.config)
  const known = new Set([...ownSecrets(config.config), ...secretNames(config.config)])
  const wanted = Object.entries(given).filter(([name]) => known.has(name))
  return { ...planStart(options, environment, Object.fromEntries(wanted), config), given }
}

/** Refuses names that the configuration does not use: a misspelt name would leave the intended secret missing. */
function checkNames(values: Readonly<Record<string, string>>, known: readonly string[]): Secrets {
  const unknown = Object.keys(values).filter((name) => !known.includes(name))
  return {
    values,
    problems: unknown.map((name) => `${name}: the configuration asks for no such secret`),
  }
}

/**
 * The engine where `STORAGE` is not set. An environment with the secret of an engine that is not named leaves it open
 * which one is meant: several workers are refused then.
 */
function unnamedEngine(
  given: Readonly<Record<string, string>>,
  known: Secrets['values'],
  workers: number,
): string {
  const isOpen = STORAGE_SECRETS.some((name) => known[name] !== undefined)
  return engineOfSecrets(given, isOpen ? 1 : workers)
}

/** `findRefusals` has already refused an unknown engine and a missing secret. */
function storageSettings(engine: string, values: Secrets['values']): StorageSettings {
  if (!isSelfHostedEngine(engine)) throw new StartError(`STORAGE: "${engine}" is no engine`)
  const name = STORAGE_ENGINES[engine].secret
  return name === undefined ? { engine } : { engine, secret: values[name] }
}

/** The names of all variables that hold secrets, the router's own included. */
export function allSecretNames(config: RouterConfig): string[] {
  return [...OWN_SECRETS, DATA_DISK_KEY, ...secretNames(config)]
}

/** How the public certificate is obtained; the command line overrides the configuration. */
export function tlsSettings({ config, options }: Start): TlsSettings {
  const criteria = config.config.service.tls ?? {}
  return options.tlsChain === undefined ? criteria : { ...criteria, chain_file: options.tlsChain }
}

function secretNames(config: RouterConfig): string[] {
  const ofProviders = Object.values(config.providers).flatMap(({ api_key_env: name }) => name ?? [])
  return [...ofProviders, ...webhookSecretNames(config.service.webhooks)]
}

/** The stand-in's address is filled in later; it is always on loopback. */
function withRealAddresses(file: RouterConfigFile): RouterConfig {
  const check = checkConfig(JSON.parse(file.textFor({ port: 1, tlsPort: 1, rootJwk: {} })))
  return check.ok ? check.config : file.config
}
