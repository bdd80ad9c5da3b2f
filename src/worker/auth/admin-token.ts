import { equalBytes, utf8 } from '../../protocol/bytes.ts'
import { sha256, sha256Hex } from '../../protocol/digest.ts'
import { ApiError } from '../http/errors.ts'
import type { Operation } from '../http/operation.ts'
import type { Storage } from '../storage/database.ts'
import { optionalNumberOf, textOf } from '../storage/row.ts'
import { sql } from '../storage/sql.ts'
import { randomSigns, signPattern, type Random } from './api-key.ts'
import { isExpired, readBearer } from './authenticate.ts'

/**
 * Tokens of operators: the boot token of the configuration, which has every permission, and named ones with a scope,
 * `cmra_<id>_<secret>`, of which only the SHA-256 is stored.
 */

/**
 * `read` only reads; `customers` may also change customers, keys and credits; `all` also tokens, maintenance and
 * quarantine.
 */
export const ADMIN_SCOPES = ['read', 'customers', 'all'] as const

export type AdminScope = (typeof ADMIN_SCOPES)[number]

/** The description of an endpoint of the operator. */
export type AdminOperation = Operation & { readonly scope: AdminScope }

/** The scopes that each scope includes. */
const INCLUDES: Readonly<Record<AdminScope, readonly AdminScope[]>> = {
  read: ['read'],
  customers: ['read', 'customers'],
  all: ADMIN_SCOPES,
}

/** The caller of the admin interface. */
export interface Administrator {
  /** Null: the boot token. */
  readonly tokenId: string | null
  readonly name: string
}

const BOOT: Administrator = { tokenId: null, name: 'boot' }

const ID_SIGNS = 10
const SECRET_SIGNS = 40
const FORM = new RegExp(`^cmra_(${signPattern(ID_SIGNS)})_${signPattern(SECRET_SIGNS)}$`)

/** A new admin token: the whole token, which only its holder keeps, and its id. */
export function newAdminToken(random: Random): { readonly id: string; readonly token: string } {
  const id = randomSigns(random, ID_SIGNS)
  return { id, token: `cmra_${id}_${randomSigns(random, SECRET_SIGNS)}` }
}

/** What is needed to authenticate an administrator. */
export interface AdminGate {
  /** The boot token. */
  readonly adminToken: string
  readonly storage: Storage
  readonly now: () => number
}

/**
 * Accepts only an admin token with this scope. The boot token is compared by digest, so that the duration reveals
 * neither its length nor a prefix; it needs no storage.
 * @throws ApiError `unauthorized`, or `insufficient_scope`
 * @throws StorageUnavailable when a named token cannot be looked up
 */
export async function requireAdmin(
  request: Request,
  scope: AdminScope,
  gate: AdminGate,
): Promise<Administrator> {
  const given = readBearer(request) ?? ''
  if (await isBootToken(given, gate.adminToken)) return BOOT
  const [, id] = FORM.exec(given) ?? []
  const known = id === undefined ? undefined : await findToken(id, given, gate)
  if (known === undefined) {
    throw new ApiError('unauthorized', 'The admin token is missing or not valid.')
  }
  if (INCLUDES[known.scope].includes(scope)) return known
  const message = `This needs an admin token of scope "${scope}"; the given one has "${known.scope}".`
  throw new ApiError('insufficient_scope', message)
}

async function isBootToken(given: string, adminToken: string): Promise<boolean> {
  const [left, right] = await Promise.all([sha256(utf8(given)), sha256(utf8(adminToken))])
  return adminToken !== '' && equalBytes(left, right)
}

async function findToken(id: string, given: string, { storage, now }: AdminGate) {
  const [rows = []] = await storage.directory().batch([
    sql`SELECT name, scope, expires_at FROM admin_tokens WHERE token_id = ${id}
      AND token_hash = ${await sha256Hex(given)} AND revoked_at IS NULL`,
  ])
  const [row] = rows
  if (row === undefined || isExpired(optionalNumberOf(row, 'expires_at'), now())) return undefined
  const scope = ADMIN_SCOPES.find((name) => name === textOf(row, 'scope'))
  return scope === undefined ? undefined : { tokenId: id, name: textOf(row, 'name'), scope }
}
