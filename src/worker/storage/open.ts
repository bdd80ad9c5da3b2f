import type { D1Database } from '@cloudflare/workers-types'
import { DEFAULT_STORAGE_ENGINE, type StorageEngineName } from '../../protocol/storage-engines.ts'
import { d1Storage } from './d1-storage.ts'
import { StorageUnavailable, type Storage } from './database.ts'
import { durableObjectStorage, type StoreTarget } from './durable-object-storage.ts'
import type { ObjectNamespace } from './object-call.ts'
import type { LocalLedger } from './local-ledger.ts'
import type { LedgerBinding, LedgerLinkHost } from './ledger-link.ts'
import { ledgerStorage } from './ledger-storage.ts'
import { postgresStorage, type PoolHost, type PoolTarget } from './postgres-storage.ts'

/** The bindings of the storage. Which of them are required depends on `STORAGE`. */
export interface StorageEnv {
  /** The engine: `durable-object` (also when absent), `sqlite`, `d1` or `postgres`. */
  readonly STORAGE?: string
  /** Namespace of the class that `makeStoreObject` returns. */
  readonly STORE?: ObjectNamespace<StoreTarget>
  /**
   * Whether the runtime keeps the object of `STORE` and all requests in one isolate, and never evicts the object; absent
   * where that is not certain.
   */
  readonly STORE_IS_LOCAL?: boolean
  /** The ledger process of this host, over mTLS pinned on both ends. */
  readonly LEDGER?: LedgerBinding
  readonly DB?: D1Database
  /** Namespace of the class that `makePostgresPool` returns. */
  readonly POSTGRES?: ObjectNamespace<PoolTarget>
  /** `postgres://` address; the pool reads it from its own environment. */
  readonly DATABASE_URL?: string
}

/** What opening a storage needs from the isolate. */
export interface StorageHost extends PoolHost, LedgerLinkHost {
  /** Gives access to the ledger of the isolate's storage object; absent where there is no such object. */
  readonly localLedger?: LocalLedger | undefined
}

const ENGINES: Readonly<
  Record<StorageEngineName, (env: StorageEnv, host: StorageHost) => Storage>
> = {
  'durable-object': (env, host) =>
    durableObjectStorage(
      required(env, 'STORE'),
      host,
      env.STORE_IS_LOCAL === true ? host.localLedger : undefined,
    ),
  sqlite: (env, host) => ledgerStorage(required(env, 'LEDGER'), host),
  d1: (env, { now }) => d1Storage(required(env, 'DB'), now),
  postgres: (env, host) => {
    required(env, 'DATABASE_URL')
    return postgresStorage(required(env, 'POSTGRES'), host)
  },
}

/**
 * Opens the storage that the environment names. Makes no call yet.
 * @throws StorageUnavailable when the engine is unknown or a binding it needs is missing
 */
export function openStorage(env: StorageEnv, host: StorageHost): Storage {
  return ENGINES[engineOf(env)](env, host)
}

/**
 * The engine that the environment names.
 * @throws StorageUnavailable when it is unknown
 */
export function engineOf({ STORAGE = DEFAULT_STORAGE_ENGINE }: StorageEnv): StorageEngineName {
  if (isEngine(STORAGE)) return STORAGE
  const known = Object.keys(ENGINES).join(', ')
  throw new StorageUnavailable(`STORAGE names no engine; known are ${known}`)
}

function isEngine(name: string): name is StorageEngineName {
  return Object.hasOwn(ENGINES, name)
}

function required<Name extends keyof StorageEnv>(
  env: StorageEnv,
  name: Name,
): NonNullable<StorageEnv[Name]> {
  const binding = env[name]
  if (binding === undefined || binding === '') {
    throw new StorageUnavailable(`the storage engine needs the binding ${name}, which is missing`)
  }
  return binding
}
