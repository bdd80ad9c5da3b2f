import { sha256Hex } from '../../protocol/digest.ts'
import { ApiError } from '../http/errors.ts'
import type { Operation } from '../http/operation.ts'
import type { Statement } from '../storage/database.ts'
import { optionalNumberOf, textOf } from '../storage/row.ts'
import { raw, sql } from '../storage/sql.ts'
import { findSession, sessionEnded, type AdminGate } from './admin-session.ts'
import { randomSigns, signPattern, type Random } from './api-key.ts'
import { readBearer } from './bearer.ts'
import { isExpired } from './api-key.ts'
import { isSecret } from './secret.ts'

/**
 * Tokens of operators: the boot token of the configuration, which has every permission, and named tokens with a scope,
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
  readonly scope: AdminScope
  /** When the token ends, ms since the epoch; null: never. */
  readonly tokenEndsAt: number | null
  /** When the request's session ends, ms since the epoch; null where the request has the token itself. */
  readonly sessionEndsAt: number | null
}

const BOOT: Administrator = {
  tokenId: null,
  name: 'boot',
  scope: 'all',
  tokenEndsAt: null,
  sessionEndsAt: null,
}

const ID_SIGNS = 10
const SECRET_SIGNS = 40
const FORM = new RegExp(`^cmra_(${signPattern(ID_SIGNS)})_${signPattern(SECRET_SIGNS)}$`)

/** A new admin token: the whole token, which only its holder keeps, and its id. */
export function newAdminToken(random: Random): { readonly id: string; readonly token: string } {
  const id = randomSigns(random, ID_SIGNS)
  return { id, token: `cmra_${id}_${randomSigns(random, SECRET_SIGNS)}` }
}

/**
 * Requires an admin token with this scope, or a session that was begun with one. The boot token needs no storage.
 * @throws ApiError `unauthorized`, `session_ended`, `cross_site_request`, or `insufficient_scope`
 * @throws StorageUnavailable when a named token or a session cannot be looked up
 */
export async function requireAdmin(
  request: Request,
  scope: AdminScope,
  gate: AdminGate,
): Promise<Administrator> {
  const known = await findAdministrator(request, gate)
  if (INCLUDES[known.scope].includes(scope)) return known
  const message = `This needs an admin token of scope "${scope}"; the given one has "${known.scope}".`
  throw new ApiError('insufficient_scope', message)
}

async function findAdministrator(request: Request, gate: AdminGate): Promise<Administrator> {
  const inSession = request.headers.has('authorization')
    ? undefined
    : await bySession(request, gate)
  return inSession ?? requireToken(request, gate)
}

/**
 * The holder of the admin token in the request itself, not of a session.
 * @throws ApiError `unauthorized`
 * @throws StorageUnavailable when a named token cannot be looked up
 */
export async function requireToken(request: Request, gate: AdminGate): Promise<Administrator> {
  const given = readBearer(request) ?? ''
  if (await isSecret(given, gate.adminToken)) return BOOT
  const [, id] = FORM.exec(given) ?? []
  const isGiven = sql`token_hash = ${await sha256Hex(given)}`
  const known = id === undefined ? undefined : await findToken(id, isGiven, gate)
  if (known !== undefined) return known
  throw new ApiError('unauthorized', 'The admin token is missing or not valid.')
}

async function bySession(request: Request, gate: AdminGate): Promise<Administrator | undefined> {
  const session = await findSession(request, gate)
  if (session === undefined) return undefined
  const { tokenId, expiresAt: sessionEndsAt } = session
  if (tokenId === null) return { ...BOOT, sessionEndsAt }
  const known = await findToken(tokenId, raw('1 = 1'), gate)
  if (known === undefined) throw sessionEnded()
  return { ...known, sessionEndsAt }
}

/** A named token that is valid now and meets an SQL condition. */
async function findToken(
  id: string,
  condition: Statement,
  { storage, now }: AdminGate,
): Promise<Administrator | undefined> {
  const [rows = []] = await storage.directory().batch([
    sql`SELECT name, scope, expires_at FROM admin_tokens
      WHERE token_id = ${id} AND ${condition} AND revoked_at IS NULL`,
  ])
  const [row] = rows
  if (row === undefined) return undefined
  const tokenEndsAt = optionalNumberOf(row, 'expires_at')
  const scope = ADMIN_SCOPES.find((name) => name === textOf(row, 'scope'))
  if (scope === undefined || isExpired(tokenEndsAt, now())) return undefined
  return { tokenId: id, name: textOf(row, 'name'), scope, tokenEndsAt, sessionEndsAt: null }
}
