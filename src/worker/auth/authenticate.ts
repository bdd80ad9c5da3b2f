import { sha256Hex } from '../../protocol/digest.ts'
import type { Row, Statement, Storage } from '../storage/database.ts'
import { optionalNumberOf, textOf } from '../storage/row.ts'
import { sql } from '../storage/sql.ts'
import { isExpired, parseApiKey, type PresentedKey } from './api-key.ts'
import { readBearer } from './bearer.ts'
import { ApiError } from '../http/errors.ts'
import { endOfFormer, wasEverKey } from './held-key.ts'
import type { Keyring } from './keyring.ts'

/** The owner of a key that exists. */
export interface Caller {
  readonly customerId: string
  readonly keyPrefix: string
  readonly keyName: string
}

/** What reading a key needs. */
export interface KeyReading {
  readonly keyring: Keyring
  /** The key of the request where it was read already. */
  readonly presentedKey?: PresentedKey | undefined
}

/**
 * Reads the key of a request, the bearer token or else `x-api-key`, without calling the customer's storage.
 * @throws ApiError `unauthorized` when there is none or its customer id was not made by this service
 * @throws StorageUnavailable when the storage does not answer
 */
export async function readApiKey(
  request: Request,
  { keyring, presentedKey }: KeyReading,
): Promise<PresentedKey> {
  if (presentedKey !== undefined) return presentedKey
  const text = readApiKeyText(request)
  const parts = parseApiKey(text)
  if (parts === undefined || !(await keyring.knows(parts.customerId))) throw invalidKey()
  return {
    customerId: parts.customerId,
    keyPrefix: parts.prefix,
    keyHash: await sha256Hex(text),
  }
}

/** The whole key as it was presented, bearer token or else `x-api-key`. @throws ApiError `unauthorized` without one */
export function readApiKeyText(request: Request): string {
  const text = readBearer(request) ?? request.headers.get('x-api-key')?.trim()
  if (text !== undefined && text !== '') return text
  const message = 'An API key is needed: send it as "Authorization: Bearer <key>".'
  throw new ApiError('unauthorized', message)
}

/** What checking a key against the storage needs. */
export interface AuthDeps extends KeyReading {
  readonly storage: Storage
  readonly now: () => number
}

/**
 * The caller of an endpoint that needs no admission: one storage read.
 * @throws ApiError `unauthorized` or `key_expired`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function authenticate(request: Request, context: AuthDeps): Promise<Caller> {
  const key = await readApiKey(request, context)
  const { caller } = await readAsCaller(key, context, [])
  return caller
}

/**
 * Reads from the caller's storage and checks the key in the same call. The rows are those of each statement.
 * @throws ApiError `unauthorized` or `key_expired`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function readAsCaller(
  key: PresentedKey,
  { storage, now }: Pick<AuthDeps, 'storage' | 'now'>,
  statements: readonly Statement[],
): Promise<{ readonly caller: Caller; readonly rows: readonly (readonly Row[])[] }> {
  const { customerId, keyPrefix } = key
  const [keys = [], ...rows] = await storage.customer(customerId).batch([
    sql`SELECT name, expires_at, ${endOfFormer(key)} AS ends_at FROM api_keys
      WHERE customer_id = ${customerId} AND key_prefix = ${keyPrefix} AND ${wasEverKey(key)}
        AND deleted_at IS NULL`,
    ...statements,
  ])
  const [row] = keys
  if (row === undefined) throw invalidKey()
  const ends = [optionalNumberOf(row, 'expires_at'), optionalNumberOf(row, 'ends_at')]
  if (ends.some((end) => isExpired(end, now()))) throw keyExpired()
  return { caller: { customerId, keyPrefix, keyName: textOf(row, 'name') }, rows }
}

/** The same answer for a key that is malformed, invented, unknown or deleted. */
export function invalidKey(): ApiError {
  return new ApiError('unauthorized', 'The API key is not valid.')
}

export function keyExpired(): ApiError {
  return new ApiError('key_expired', 'The API key has expired.')
}
