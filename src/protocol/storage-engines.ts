/** The properties of a storage engine that matter to operators. */
export interface StorageEngine {
  /** Whether it is available on the operator's own machine; the others exist only on hosts for Workers. */
  readonly selfHosted: boolean
  /** The variable of the secret that it needs. */
  readonly secret: 'DATABASE_URL' | undefined
  /** Whether several worker processes may write at the same time. */
  readonly shared: boolean
  /**
   * Where the rows are stored: by the worker's own process, the host's ledger process, a database server, or the host
   * for Workers.
   */
  readonly keeper: 'worker' | 'ledger' | 'server' | 'host'
}

/** Every storage engine by its name in `STORAGE`; how each is opened is in the worker's `storage` folder. */
export const STORAGE_ENGINES = {
  'durable-object': { selfHosted: true, secret: undefined, shared: false, keeper: 'worker' },
  sqlite: { selfHosted: true, secret: undefined, shared: true, keeper: 'ledger' },
  d1: { selfHosted: false, secret: undefined, shared: true, keeper: 'host' },
  postgres: { selfHosted: true, secret: 'DATABASE_URL', shared: true, keeper: 'server' },
} as const satisfies Readonly<Record<string, StorageEngine>>

export type StorageEngineName = keyof typeof STORAGE_ENGINES

/** The engine where `STORAGE` is not set. */
export const DEFAULT_STORAGE_ENGINE = 'durable-object' satisfies StorageEngineName

/** The engines available on the operator's own machine. */
export const SELF_HOSTED_ENGINES = engineNames().filter((name) => STORAGE_ENGINES[name].selfHosted)

/** The secrets that engines need, by variable name. */
export const STORAGE_SECRETS = [
  ...new Set(engineNames().flatMap((name) => STORAGE_ENGINES[name].secret ?? [])),
]

/**
 * The engine whose secret is among the given ones, by variable name; where none is, the embedded engine for this many
 * worker processes.
 */
export function engineOfSecrets(
  given: Readonly<Record<string, string>>,
  workers = 1,
): StorageEngineName {
  const named = SELF_HOSTED_ENGINES.find((name) => {
    const { secret } = STORAGE_ENGINES[name]
    return secret !== undefined && given[secret] !== undefined
  })
  return named ?? (workers > 1 ? 'sqlite' : DEFAULT_STORAGE_ENGINE)
}

/** Engines whose rows are in files on this machine. */
type EmbeddedEngineName = {
  [Name in StorageEngineName]: (typeof STORAGE_ENGINES)[Name]['keeper'] extends 'worker' | 'ledger'
    ? Name
    : never
}[StorageEngineName]

/** Whether the engine's rows are in files on this machine. */
export function isEmbedded(name: StorageEngineName): name is EmbeddedEngineName {
  const { keeper } = STORAGE_ENGINES[name]
  return keeper === 'worker' || keeper === 'ledger'
}

export function isSelfHostedEngine(name: string): name is StorageEngineName {
  return SELF_HOSTED_ENGINES.some((known) => known === name)
}

function engineNames(): StorageEngineName[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant table
  return Object.keys(STORAGE_ENGINES) as StorageEngineName[]
}
