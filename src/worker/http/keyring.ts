import { fromHex, toHex, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Storage } from '../storage/database.ts'
import { keyringSecret } from '../storage/directory.ts'
import {
  cacheSaltOf,
  importSecret,
  isCustomerId,
  newApiKey,
  newCustomerId,
  parseApiKey,
  type NewApiKey,
  type Random,
} from './api-key.ts'
import { readBearer } from './bearer.ts'
import { ApiError } from './errors.ts'

/** A key whose form and customer were checked, but not yet whether the customer has it. */
export interface PresentedKey {
  readonly customerId: string
  /** `cmr_<customer>_<key id>`, which is no secret. */
  readonly keyPrefix: string
  /** SHA-256 of the whole key, lowercase hex. */
  readonly keyHash: string
}

/** Makes and recognises customer ids and API keys, under the secret of the directory. */
export interface Keyring {
  /**
   * Reads the bearer key of a request without touching the customer's storage.
   * @throws ApiError `unauthorized` when there is none or it cannot be one of ours
   * @throws StorageUnavailable
   */
  read(request: Request): Promise<PresentedKey>
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

/**
 * The keyring of an isolate. It reads the secret at its first use and keeps it; the secret never changes.
 * Concurrent first uses each read it for themselves: a request may not wait for work another one began.
 */
export function createKeyring(
  storage: Storage,
  tools: { readonly random: Random; readonly now: () => number } = {
    random: randomBytes,
    now: Date.now,
  },
): Keyring {
  let secret: CryptoKey | undefined

  async function loadSecret(): Promise<CryptoKey> {
    if (secret !== undefined) return secret
    const candidate = toHex(tools.random(SECRET_BYTES))
    const stored = await keyringSecret(storage.directory(), candidate, tools.now())
    secret = await importSecret(fromHex(stored))
    return secret
  }

  const knows = async (id: string) => isCustomerId(await loadSecret(), id)
  return {
    read: (request) => readKey(request, knows),
    knows,
    newCustomerId: async () => newCustomerId(await loadSecret(), tools.random),
    newApiKey: (id) => newApiKey(id, tools.random),
    cacheSalt: async (id) => cacheSaltOf(await loadSecret(), id),
  }
}

async function readKey(request: Request, knows: Keyring['knows']): Promise<PresentedKey> {
  const text = readBearer(request)
  if (text === undefined) {
    throw new ApiError(
      'unauthorized',
      'An API key is needed: send it as "Authorization: Bearer <key>".',
    )
  }
  const parts = parseApiKey(text)
  if (parts === undefined || !(await knows(parts.customerId))) throw invalidKey()
  return {
    customerId: parts.customerId,
    keyPrefix: parts.prefix,
    keyHash: await sha256Hex(text),
  }
}

/** The one answer to a key that is malformed, invented, unknown or deleted. */
export function invalidKey(): ApiError {
  return new ApiError('unauthorized', 'The API key is not valid.')
}

function randomBytes(length: number): Bytes {
  return crypto.getRandomValues(new Uint8Array(length))
}
