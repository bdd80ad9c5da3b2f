import { fromHex, toHex } from '../../protocol/bytes.ts'
import type { Storage } from '../storage/database.ts'
import { keyringSecret } from '../storage/directory.ts'
import {
  cacheSaltOf,
  importSecret,
  isCustomerId,
  newApiKey,
  newCustomerId,
  type NewApiKey,
  type Random,
} from './api-key.ts'

/** Makes customer ids and API keys and recognises the ids, under the secret of the directory. */
export interface Keyring {
  /** Whether a customer id was made here. Any other must not reach the storage. @throws StorageUnavailable */
  knows(customerId: string): Promise<boolean>
  /** A new customer id. @throws StorageUnavailable */
  newCustomerId(): Promise<string>
  /** A new API key of a customer. */
  newApiKey(customerId: string): NewApiKey
  /** What separates a customer's prefix cache at a provider from everybody else's; tells nothing of the id. */
  cacheSalt(customerId: string): Promise<string>
}

const SECRET_BYTES = 32

/** Customers whose id need not be checked again, some hundred bytes each. */
const MAX_KNOWN = 10_000

/**
 * The keyring of an isolate. It reads the secret at its first use and keeps it; the secret never changes.
 * Concurrent first uses each read it for themselves: a request may not wait for work another one began.
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

  /** An id stays what it is: only those that were made here are remembered, so nobody can fill the memory. */
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
    cacheSalt: async (id) => cacheSaltOf(await loadSecret(), id),
  }
}
