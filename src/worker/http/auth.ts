import { equalBytes, utf8 } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import type { Storage } from '../storage/database.ts'
import { readBearer } from './bearer.ts'
import { ApiError } from './errors.ts'
import { invalidKey, type Keyring } from './keyring.ts'

export type { PresentedKey } from './keyring.ts'

/** The owner of a key that exists. */
export interface Caller {
  readonly customerId: string
  readonly keyPrefix: string
  readonly keyName: string
}

/**
 * The caller of an endpoint that needs no admission: one storage read.
 * @throws ApiError `unauthorized` @throws StorageUnavailable
 */
export async function authenticate(
  request: Request,
  context: { readonly keyring: Keyring; readonly storage: Storage },
): Promise<Caller> {
  const { customerId, keyPrefix, keyHash } = await context.keyring.read(request)
  const [rows = []] = await context.storage.customer(customerId).batch([
    {
      sql: `SELECT name FROM api_keys
        WHERE customer_id = ? AND key_prefix = ? AND key_hash = ? AND deleted_at IS NULL`,
      params: [customerId, keyPrefix, keyHash],
    },
  ])
  const [row] = rows
  if (row === undefined) throw invalidKey()
  return { customerId, keyPrefix, keyName: String(row['name']) }
}

/**
 * Lets only the holder of the admin token pass. Digests are compared, so that the time tells nothing of the
 * token's length or beginning.
 * @throws ApiError `unauthorized`
 */
export async function requireAdmin(request: Request, adminToken: string): Promise<void> {
  const given = readBearer(request) ?? ''
  const [left, right] = await Promise.all([sha256(utf8(given)), sha256(utf8(adminToken))])
  if (adminToken === '' || !equalBytes(left, right)) {
    throw new ApiError('unauthorized', 'The admin token is missing or not valid.')
  }
}
