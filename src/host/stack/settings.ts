import { fileURLToPath } from 'node:url'
import { resolve } from 'node:path'
import { z } from 'zod'
import { isBearerToken, NO_BEARER_TOKEN } from '../../protocol/bearer-token.ts'
import {
  DEFAULT_STORAGE_ENGINE,
  SELF_HOSTED_ENGINES,
  STORAGE_ENGINES,
  type StorageEngineName,
} from '../../protocol/storage-engines.ts'
import { isPostgresAddress, NO_POSTGRES_ADDRESS } from './database-tls.ts'
import { StartError } from './start-error.ts'

/** The local stack's settings, read once from the environment. */
export interface Settings {
  /** 0 means any free port. */
  readonly port: number
  readonly tlsPort: number
  readonly configPath: string
  readonly stateDir: string
  /** Undefined: generated on the first start and stored in the state directory. */
  readonly adminToken: string | undefined
  readonly storage: StorageSettings
  /** Undefined: the daemon. */
  readonly providerCalls?: ProviderCalls | undefined
  /** Undefined: as many as the limit on open files allows. */
  readonly maxOpenRequests?: number | undefined
  /** Undefined: no limit per client, because all clients are on this machine. */
  readonly connectionsPerSource?: number | undefined
  /** How long a client may leave data unread that waits for it; undefined: five minutes. */
  readonly unreadSeconds?: number | undefined
}

const PROVIDER_CALLS = ['daemon', 'worker'] as const

/** Who calls providers without attestation: the daemon, or the worker itself, as on a host for Workers. */
export type ProviderCalls = (typeof PROVIDER_CALLS)[number]

export interface StorageSettings {
  readonly engine: StorageEngineName
  /** The value of the secret that the engine needs, if it needs one. */
  readonly secret?: string | undefined
}

/** The root of the checkout, or of the installed package. */
export const PROJECT_DIR = fileURLToPath(new URL('../../..', import.meta.url))

/** Relative to the current directory of the command. */
export const DEFAULT_STATE_DIR = '.state'

const PORT_RULE = 'give a port number, or 0 for any free port'

const COUNT_RULE = 'give a number above 0'

const count = z.coerce.number(COUNT_RULE).int(COUNT_RULE).min(1, COUNT_RULE)

const port = (standard: number) =>
  z.coerce
    .number(PORT_RULE)
    .int(PORT_RULE)
    .min(0, PORT_RULE)
    .max(65_535, PORT_RULE)
    .default(standard)

const environmentSchema = z.object({
  PORT: port(8787),
  TLS_PORT: port(8788),
  ROUTER_CONFIG: z.string().min(1).default(resolve(PROJECT_DIR, 'config/local.json')),
  STATE_DIR: z.string().min(1).default(DEFAULT_STATE_DIR),
  ADMIN_TOKEN: z.string().refine(isBearerToken, NO_BEARER_TOKEN).optional(),
  STORAGE: z.enum(SELF_HOSTED_ENGINES).default(DEFAULT_STORAGE_ENGINE),
  DATABASE_URL: z.string().min(1).optional(),
  PROVIDER_CALLS: z.enum(PROVIDER_CALLS).optional(),
  MAX_OPEN_REQUESTS: count.optional(),
  CONNECTIONS_PER_SOURCE: count.optional(),
  UNREAD_SECONDS: count.max(86_400, 'give at most 86400').optional(),
})

/** @throws StartError when a variable is invalid; the message names it */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.entries(environment).filter(([, value]) => value !== '')
  const parsed = environmentSchema.safeParse(Object.fromEntries(given))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new StartError(`${issue?.path.join('.')}: ${issue?.message}`)
  }
  const values = parsed.data
  return {
    port: values.PORT,
    tlsPort: values.TLS_PORT,
    configPath: resolve(values.ROUTER_CONFIG),
    stateDir: resolve(values.STATE_DIR),
    adminToken: values.ADMIN_TOKEN,
    storage: storageSettings(values.STORAGE, values),
    providerCalls: values.PROVIDER_CALLS,
    maxOpenRequests: values.MAX_OPEN_REQUESTS,
    connectionsPerSource: values.CONNECTIONS_PER_SOURCE,
    unreadSeconds: values.UNREAD_SECONDS,
  }
}

function storageSettings(
  engine: StorageEngineName,
  values: Readonly<{ DATABASE_URL?: string | undefined }>,
): StorageSettings {
  const name = STORAGE_ENGINES[engine].secret
  if (name === undefined) return { engine }
  const secret = values[name]
  if (secret === undefined) throw new StartError(`${name}: needed for STORAGE=${engine}`)
  if (!isPostgresAddress(secret)) throw new StartError(`${name}: ${NO_POSTGRES_ADDRESS}`)
  return { engine, secret }
}
