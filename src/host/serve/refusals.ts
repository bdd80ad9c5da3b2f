import { findStartProblems } from '../../enclave/config/start-rules.ts'
import { isBearerToken, NO_BEARER_TOKEN } from '../../protocol/bearer-token.ts'
import type { Platform } from '../../protocol/boot.ts'
import type { RouterConfig } from '../../protocol/config.ts'
import { isLoopbackHost, staysPrivate } from '../../protocol/loopback.ts'
import { DATA_DISK_KEY } from '../../protocol/own-secrets.ts'
import {
  isEmbedded,
  isSelfHostedEngine,
  SELF_HOSTED_ENGINES,
  STORAGE_ENGINES,
} from '../../protocol/storage-engines.ts'
import {
  areAuthorities,
  databaseHost,
  isPostgresAddress,
  NO_POSTGRES_ADDRESS,
} from '../stack/database-tls.ts'
import { formatAddress } from '../stack/listen-address.ts'
import type { ServeOptions } from './options.ts'
import type { Secrets } from './secrets.ts'

/** The facts that decide whether a start in production mode is refused. */
export interface StartFacts {
  readonly options: ServeOptions
  /** Worker processes. */
  readonly workers: number
  readonly config: RouterConfig
  /** Whether a provider is the stand-in, whose address is filled in at the start. */
  readonly usesStandin: boolean
  readonly secrets: Secrets
  /** The engine's name, as given. */
  readonly storage: string
  readonly platform: Platform
  /** Whether this machine has the kernel's interface for attestation reports. */
  readonly hardware: boolean
  /** Permission bits of the configuration file. */
  readonly configMode: number
  /** Whether the router gets its secrets later, in a document of its operator. */
  readonly sealed: boolean
  /** The options of Node for this process and for those that it starts. */
  readonly nodeOptions: readonly string[]
  /** Whether Node is configured to accept any TLS certificate (`NODE_TLS_REJECT_UNAUTHORIZED`). */
  readonly tlsUnverified: boolean
}

const MIN_TOKEN_LENGTH = 24

/** Finds every reason to refuse a start in production mode, each as one line `<where>: <why>`. */
export function findRefusals(facts: StartFacts): string[] {
  const { config, secrets } = facts
  if (config.service.mode !== 'production') {
    return ['service.mode: is "local"; leave it out, or use "npm start" for a local stack']
  }
  const around = {
    env: secrets.values,
    platform: facts.platform,
    mode: 'production',
    adminToken: facts.sealed ? null : (secrets.values['ADMIN_TOKEN'] ?? ''),
  } as const
  return [
    ...missingHardware(facts),
    ...findStartProblems(config, around).map(({ path, reason }) => `${path}: ${reason}`),
    ...secrets.problems,
    ...(facts.sealed ? openSecrets(secrets) : weakAdminToken(secrets)),
    ...standinWhileSealed(facts),
    ...storageProblems(facts),
    ...databaseTlsProblems(facts),
    ...dataDiskProblems(facts),
    ...plainListener(facts),
    ...openConfigFile(facts),
    ...openMemory(facts),
    ...unverifiedTls(facts),
    ...tlsProblems(config.service.tls),
  ]
}

/** A sealed router must not get secrets from its environment, because the host sets it and must not see them. */
function openSecrets({ values }: Secrets): string[] {
  return Object.keys(values).map(
    (name) =>
      `--sealed: ${name} is given at the start; a sealed router takes secrets by document only`,
  )
}

/**
 * A document names the digest of the operator's file, but the configuration in effect, with the stand-in's address
 * filled in, would have another digest.
 */
function standinWhileSealed({ sealed, usesStandin }: StartFacts): string[] {
  if (!sealed || !usesStandin) return []
  return [
    '--sealed: the address of standin.localhost is filled in at the start, so no document would be for this configuration; give the provider an address of its own',
  ]
}

function missingHardware({ config, hardware }: StartFacts): string[] {
  if (hardware || config.service.allow_simulated) return []
  return [
    'service.allow_simulated: is not set, and this machine has no SEV-SNP reports (/sys/kernel/config/tsm/report)',
  ]
}

function weakAdminToken({ values, problems }: Secrets): string[] {
  const token = values['ADMIN_TOKEN']
  if (token === undefined) {
    if (problems.some((problem) => problem.startsWith('ADMIN_TOKEN'))) return []
    return ['ADMIN_TOKEN: is missing; set it, or ADMIN_TOKEN_FILE']
  }
  if (!isBearerToken(token)) return [`ADMIN_TOKEN: ${NO_BEARER_TOKEN}`]
  if (token.length >= MIN_TOKEN_LENGTH) return []
  return [`ADMIN_TOKEN: is shorter than ${MIN_TOKEN_LENGTH} characters`]
}

function storageProblems({ workers, storage, secrets, sealed }: StartFacts): string[] {
  if (!isSelfHostedEngine(storage)) {
    const known = SELF_HOSTED_ENGINES.map((name) => `"${name}"`).join(' or ')
    return [`STORAGE: is "${storage}"; it can be ${known}`]
  }
  const { secret, shared } = STORAGE_ENGINES[storage]
  if (secret !== undefined) {
    const reported = secrets.problems.some((problem) => problem.startsWith(secret))
    const address = secrets.values[secret]
    if (address !== undefined) {
      return isPostgresAddress(address) ? [] : [`${secret}: ${NO_POSTGRES_ADDRESS}`]
    }
    if (reported || sealed) return []
    return [`${secret}: is missing; STORAGE=${storage} needs it, or ${secret}_FILE`]
  }
  if (shared || workers === 1) return []
  return [
    `--workers: ${workers} processes need STORAGE=sqlite or STORAGE=postgres; files of Durable Objects have one writer`,
  ]
}

/**
 * The host is between a guest and its database, so only an authority in the measured configuration can prove the
 * identity of the database.
 */
function databaseTlsProblems({ options, config, storage, secrets }: StartFacts): string[] {
  const ca = config.service.database_ca
  if (ca !== undefined && !areAuthorities(ca)) {
    return ['service.database_ca: has a certificate that is not of a certificate authority']
  }
  const address = storage === 'postgres' ? secrets.values['DATABASE_URL'] : undefined
  if (address === undefined) return []
  const host = databaseHost(address)
  if (ca !== undefined) {
    return host === undefined
      ? ['DATABASE_URL: service.database_ca needs the name of one host']
      : []
  }
  if (options.sealed !== true || (host !== undefined && isLoopbackHost(host))) return []
  return ['service.database_ca: is missing; a guest trusts no database beyond loopback without it']
}

function dataDiskProblems({ options, config, storage, secrets, sealed }: StartFacts): string[] {
  if (!config.service.data_disk) return []
  const inGuest = options.sealed === true && options.volume !== undefined
  if (!inGuest) return ['service.data_disk: only the guest image has a data disk to open']
  if (sealed) return []
  return [
    ...(isSelfHostedEngine(storage) && isEmbedded(storage)
      ? []
      : [`service.data_disk: holds the embedded ledger, and the ledger is in ${storage}`]),
    ...(secrets.values[DATA_DISK_KEY] === undefined
      ? [`${DATA_DISK_KEY}: is missing; service.data_disk needs it`]
      : []),
  ]
}

function plainListener({ options: { http } }: StartFacts): string[] {
  if (isLoopbackHost(http.host)) return []
  return [
    `--http: ${formatAddress(http)} is not on loopback; plain HTTP would show prompts to the network`,
  ]
}

function openConfigFile({ options, configMode }: StartFacts): string[] {
  if ((configMode & 0o002) === 0) return []
  return [
    `--config: every user may write ${options.config}, and so send prompts anywhere: chmod o-w it`,
  ]
}

/** Options of Node that expose a process's memory or keys to others. Options of one kind share a prefix. */
const EXPOSING = ['--inspect', '--tls-keylog', '--heapsnapshot'] as const

/**
 * A debugger, heap snapshots and logged TLS keys disclose the receipt key and prompts, and no evidence would show it.
 */
function openMemory({ nodeOptions }: StartFacts): string[] {
  return nodeOptions
    .map((option) => option.replace(/=.*$/s, '').replaceAll('_', '-'))
    .filter((name) => EXPOSING.some((exposing) => name.startsWith(exposing)))
    .map(
      (name) =>
        `NODE_OPTIONS: ${name} opens the memory of the router, its keys and prompts, to others`,
    )
}

/** NVIDIA's verdicts are authenticated only by the TLS certificate of its service. */
function unverifiedTls({ tlsUnverified }: StartFacts): string[] {
  if (!tlsUnverified) return []
  return [
    'NODE_TLS_REJECT_UNAUTHORIZED: is "0", and anybody could answer in place of the services that verification needs',
  ]
}

function tlsProblems(tls: RouterConfig['service']['tls']): string[] {
  const directory = tls?.acme_directory
  if (directory === undefined) return []
  const open = !staysPrivate(new URL(directory))
  return [
    ...(tls?.domains === undefined ? ['service.tls.domains: is needed with acme_directory'] : []),
    ...(tls?.chain_file === undefined
      ? []
      : ['service.tls.chain_file: cannot be combined with acme_directory']),
    ...(open ? ['service.tls.acme_directory: must be https'] : []),
  ]
}
