import { fromHex, toHex } from '../../protocol/bytes.ts'
import type { Storage } from '../storage/database.ts'
import { keyringSecret } from '../storage/directory.ts'
import { newAdminToken } from './admin-token.ts'
import {
  cacheSaltOf,
  importSecret,
  isCustomerId,
  newApiKey,
  newCustomerId,
  renewApiKey,
  type NewApiKey,
  type Random,
} from './api-key.ts'

/** Makes customer ids and API keys, and recognises the ids, with the directory's secret. */
export interface Keyring {
  /**
   * Whether a customer id was made by this service. Any other must not reach the storage.
   * @throws StorageUnavailable
   */
  knows(customerId: string): Promise<boolean>
  /** A new customer id. @throws StorageUnavailable */
  newCustomerId(): Promise<string>
  /** A new API key of a customer. */
  newApiKey(customerId: string): NewApiKey
  /** A new secret for the key with this prefix. */
  renewApiKey(prefix: string): NewApiKey
  /** A new named admin token. */
  newAdminToken(): ReturnType<typeof newAdminToken>
  /**
   * The salt that separates a customer's prefix cache at a provider from those of others; it does not reveal the id.
   */
  cacheSalt(customerId: string): Promise<string>
}

const SECRET_BYTES = 32

/** Maximum number of cached customer ids, some hundred bytes each. */
const MAX_KNOWN = 50_000

/**
 * The keyring of an isolate. It reads the directory's secret at its first use and caches it; the secret never changes.
 * Concurrent first uses each read it separately, because in workerd a request must not await work that another one began.
 */
export function createKeyring(
  storage: Storage,
  tools: { readonly random: Random; readonly now: () => number },
): Keyring {
  let secret: CryptoKey | undefined
  const known = new Set<string>()

  async function loadSecret(): Promise<CryptoKey> {
    if (secret !== undefined) return secret
    const candidate = toHex(tools.random(SECRET_BYTES))
    const stored = await keyringSecret(storage.directory(), candidate, tools.now())
    secret = await importSecret(fromHex(stored))
    return secret
  }

  /** Caches only valid ids, which stay valid, so that invented ones cannot fill the memory. */
  async function knows(id: string): Promise<boolean> {
    if (known.has(id)) return true
    const isValid = await isCustomerId(await loadSecret(), id)
    if (isValid && known.size < MAX_KNOWN) known.add(id)
    return isValid
  }

  return {
    knows,
    newCustomerId: async () => newCustomerId(await loadSecret(), tools.random),
    newApiKey: (id) => newApiKey(id, tools.random),
    renewApiKey: (prefix) => renewApiKey(prefix, tools.random),
    newAdminToken: () => newAdminToken(tools.random),
    cacheSalt: async (id) => cacheSaltOf(await loadSecret(), id),
  }
}
