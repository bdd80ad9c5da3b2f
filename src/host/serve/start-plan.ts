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

/** Everything that a start in production mode needs, checked. */
export interface Start {
  readonly options: ServeOptions
  /** Worker processes. */
  readonly workers: number
  /**
   * Carriers: threads of the daemon beside its main thread that carry the workers' calls. With 0, the main thread does.
   */
  readonly carriers: number
  readonly config: RouterConfigFile
  readonly platform: Platform
  readonly storage: StorageSettings
  /** Null: the router is sealed. */
  readonly adminToken: string | null
  /** The secrets of the document that this start was made from. */
  readonly given?: Readonly<Record<string, string>> | undefined
  /** The key of the guest's data disk, where the configuration requires one. */
  readonly dataDiskKey?: string | undefined
  /** Values of the variables that the configuration names. */
  readonly providerSecrets: Readonly<Record<string, string>>
}

type Environment = Readonly<Record<string, string | undefined>>

/** The router's own secrets that the configuration requires. */
function ownSecrets({ service }: RouterConfig): string[] {
  return service.data_disk ? [...OWN_SECRETS, DATA_DISK_KEY] : [...OWN_SECRETS]
}

/**
 * Reads the configuration and the secrets for a start.
 * @param given the secrets of a document, for a router that was started sealed; absent before the first document, when
 *   the router starts without secrets
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
  const secrets =
    given === undefined
      ? withNamedEngine(readSecrets(known, environment), environment)
      : checkNames(given, known)
  const sealed = options.sealed === true && given === undefined
  const hardware = hasReportInterface()
  const platform = choosePlatform(config.config.service.allow_simulated, hardware)
  const workers = options.workers ?? config.config.service.workers
  const storage = environment['STORAGE'] || engineOfSecrets(given ?? {}, workers)
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

/**
 * Node's options on the command line apply to this process, those in the variable also to the processes that it starts.
 */
function nodeOptions({ NODE_OPTIONS: given = '' }: Environment): string[] {
  return [...process.execArgv, ...given.split(/[\s"]+/)]
}

/**
 * Like `planStart`, for a reload. Secrets of a former document that the new configuration does not use are ignored: the
 * document was checked when it arrived, and a provider may have been removed since.
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
 * Refuses the secret of an engine where `STORAGE` names none: the router would otherwise serve with an empty ledger on
 * its own disk, and not with the database that the operator means.
 */
function withNamedEngine(secrets: Secrets, { STORAGE }: Environment): Secrets {
  if (STORAGE) return secrets
  const problems = STORAGE_SECRETS.filter((name) => secrets.values[name] !== undefined).map(
    (name) =>
      `STORAGE: is not set, and ${name} is; set STORAGE=${engineOfSecrets(secrets.values)} to use that database`,
  )
  return { ...secrets, problems: [...secrets.problems, ...problems] }
}

/** `findRefusals` has already refused an unknown engine and a missing secret. */
function storageSettings(engine: string, values: Secrets['values']): StorageSettings {
  if (!isSelfHostedEngine(engine))
    throw new StartError(`STORAGE: "${engine}" is not a storage engine`)
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

/**
 * The configuration with a loopback address for the stand-in, whose real address is filled in later and is always on
 * loopback.
 */
function withRealAddresses(file: RouterConfigFile): RouterConfig {
  const check = checkConfig(JSON.parse(file.textFor({ port: 1, tlsPort: 1, rootJwk: {} })))
  return check.ok ? check.config : file.config
}
