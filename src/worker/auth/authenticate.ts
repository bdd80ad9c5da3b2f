import { sha256Hex } from '../../protocol/digest.ts'
import type { Database, Row, Statement, Storage } from '../storage/database.ts'
import type { KeyFacts } from '../storage/ledger-operations.ts'
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
  /** The request's key, where it was read before. */
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

/**
 * The whole key in the request: the bearer token, or else `x-api-key`.
 * @throws ApiError `unauthorized` without one
 */
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
 * The owner of the presented key, with one storage read. An engine that keeps accounts in memory loads what the key's
 * admissions need at the same time, so that these need no read of their own.
 * @throws ApiError `unauthorized` or `key_expired`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function authenticate(request: Request, context: AuthDeps): Promise<Caller> {
  const key = await readApiKey(request, context)
  return callerOf(key, await findKey(context.storage.customer(key.customerId), key), context.now())
}

/**
 * Finds a key in its customer's storage, whether or not it has expired; undefined: there is no such key.
 * @throws StorageUnavailable when the storage does not answer
 */
export async function findKey(db: Database, key: PresentedKey): Promise<KeyFacts | undefined> {
  if (db.ledger?.findKey !== undefined) return db.ledger.findKey(key)
  const [keys = []] = await db.batch([selectKey(key)])
  return factsOf(keys)
}

/**
 * Reads from the caller's storage and checks the key in the same call.
 * @returns the caller, and the rows of each statement
 * @throws ApiError `unauthorized` or `key_expired`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function readAsCaller(
  key: PresentedKey,
  { storage, now }: Pick<AuthDeps, 'storage' | 'now'>,
  statements: readonly Statement[],
): Promise<{ readonly caller: Caller; readonly rows: readonly (readonly Row[])[] }> {
  const db = storage.customer(key.customerId)
  const [keys = [], ...rows] = await db.batch([selectKey(key), ...statements])
  return { caller: callerOf(key, factsOf(keys), now()), rows }
}

function selectKey(key: PresentedKey): Statement {
  return sql`SELECT name, expires_at, ${endOfFormer(key)} AS ends_at FROM api_keys
    WHERE customer_id = ${key.customerId} AND key_prefix = ${key.keyPrefix} AND ${wasEverKey(key)}
      AND deleted_at IS NULL`
}

function factsOf([row]: readonly Row[]): KeyFacts | undefined {
  return (
    row && {
      keyName: textOf(row, 'name'),
      expiresAt: optionalNumberOf(row, 'expires_at'),
      secretEndsAt: optionalNumberOf(row, 'ends_at'),
    }
  )
}

/** @throws ApiError `unauthorized` or `key_expired` */
function callerOf(
  { customerId, keyPrefix }: PresentedKey,
  facts: KeyFacts | undefined,
  now: number,
): Caller {
  if (facts === undefined) throw invalidKey()
  const { keyName, expiresAt, secretEndsAt } = facts
  if (isExpired(expiresAt, now) || isExpired(secretEndsAt, now)) throw keyExpired()
  return { customerId, keyPrefix, keyName }
}

/** The same answer for a key that is malformed, invented, unknown or deleted. */
export function invalidKey(): ApiError {
  return new ApiError('unauthorized', 'The API key is not valid.')
}

export function keyExpired(): ApiError {
  return new ApiError('key_expired', 'The API key has expired.')
}
