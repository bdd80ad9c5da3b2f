import { equalBytes, toHex, utf8 } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { ApiError } from '../http/errors.ts'
import type { Storage } from '../storage/database.ts'
import { numberOf, optionalTextOf } from '../storage/row.ts'
import { int64, sql } from '../storage/sql.ts'
import type { Random } from './api-key.ts'

/**
 * Browser sessions, begun with an admin token. A session is a secret in a cookie that no script can read; the storage has
 * its digest and the token that it stands for. A session may do what that token may, and ends with it.
 */

const SESSION_MS = 2 * 3_600_000

const SECRET_BYTES = 32
const SECRET = /^[0-9a-f]{64}$/

/**
 * A header of the console's page. A page of another origin could send it only after a preflight, which admin endpoints never
 * grant.
 */
const OWN_PAGE_HEADER = 'x-cmr-console'

/** What recognising an administrator needs from a context. */
export interface AdminGate {
  /** The boot token. */
  readonly adminToken: string
  readonly storage: Storage
  readonly now: () => number
}

/** The token that a session stands for. */
export interface SessionToken {
  /** Null: the boot token. */
  readonly tokenId: string | null
  /** When the token itself ends, ms since the epoch; null: never. */
  readonly tokenEndsAt: number | null
}

/** A session that has begun. */
export interface BegunSession {
  /** The value of `Set-Cookie`. */
  readonly cookie: string
  readonly expiresAt: number
}

/**
 * Begins a session. Its secret is always new, whatever cookie the request has.
 * @throws StorageUnavailable when the storage does not answer
 */
export async function beginSession(
  request: Request,
  { tokenId, tokenEndsAt }: SessionToken,
  gate: AdminGate & { readonly randomBytes: Random },
): Promise<BegunSession> {
  const secret = toHex(gate.randomBytes(SECRET_BYTES))
  const now = gate.now()
  const expiresAt = Math.min(now + SESSION_MS, tokenEndsAt ?? Number.POSITIVE_INFINITY)
  const binding = tokenId === null ? await bootBinding(secret, gate.adminToken) : null
  await gate.storage.directory().batch([
    sql`DELETE FROM admin_sessions WHERE expires_at <= ${int64(now)}`,
    sql`INSERT INTO admin_sessions (session_hash, token_id, boot_binding, created_at, expires_at)
      VALUES (${await sha256Hex(secret)}, ${tokenId}, ${binding}, ${int64(now)}, ${int64(expiresAt)})`,
  ])
  const seconds = Math.floor((expiresAt - now) / 1000)
  return { cookie: cookieText(request, secret, seconds), expiresAt }
}

/**
 * The session of a request and when it ends; undefined where the request has no session cookie.
 * @throws ApiError `cross_site_request` for a request that the console's own page did not make; `session_ended`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function findSession(
  request: Request,
  { adminToken, storage, now }: AdminGate,
): Promise<{ readonly tokenId: string | null; readonly expiresAt: number } | undefined> {
  const secret = readSecret(request)
  if (secret === undefined) return undefined
  requireOwnPage(request)
  const [rows = []] = await storage.directory().batch([
    sql`SELECT token_id, boot_binding, expires_at FROM admin_sessions
      WHERE session_hash = ${await sha256Hex(secret)} AND expires_at > ${int64(now())}`,
  ])
  const [row] = rows
  if (row === undefined) throw sessionEnded()
  const tokenId = optionalTextOf(row, 'token_id')
  const binding = utf8(optionalTextOf(row, 'boot_binding') ?? '')
  const isBoot = equalBytes(binding, utf8(await bootBinding(secret, adminToken)))
  // The boot token was replaced or removed since the session began.
  if (tokenId === null && (adminToken === '' || !isBoot)) throw sessionEnded()
  return { tokenId, expiresAt: numberOf(row, 'expires_at') }
}

/**
 * Ends the session of a request, if it has one.
 * @returns the `Set-Cookie` that removes the cookie
 * @throws ApiError `cross_site_request`
 * @throws StorageUnavailable when the storage does not answer
 */
export async function endSession(request: Request, { storage }: AdminGate): Promise<string> {
  const secret = readSecret(request)
  if (secret !== undefined) {
    requireOwnPage(request)
    await storage
      .directory()
      .batch([sql`DELETE FROM admin_sessions WHERE session_hash = ${await sha256Hex(secret)}`])
  }
  return cookieText(request, '', 0)
}

/** The session has expired or was ended, or its token is no longer valid. */
export function sessionEnded(): ApiError {
  return new ApiError('session_ended', 'The session has ended. Sign in again.')
}

/**
 * The secret in the session cookie. If there are two cookies of that name, somebody else has set one of them, and neither
 * counts.
 */
function readSecret(request: Request): string | undefined {
  const prefix = `${cookieName(request)}=`
  const values = (request.headers.get('cookie') ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(prefix))
    .map((part) => part.slice(prefix.length))
  const [secret] = values
  return values.length === 1 && secret !== undefined && SECRET.test(secret) ? secret : undefined
}

/**
 * Requires that the console's own page made the request. In addition to `SameSite=Strict`, which still allows pages of
 * sibling domains and of other ports of this host.
 */
function requireOwnPage({ headers, url }: Request): void {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const isOwn =
    headers.get(OWN_PAGE_HEADER) === '1' &&
    (site === null || site === 'same-origin') &&
    (origin === null || hostOf(origin) === hostOf(url))
  if (isOwn) return
  const message = 'A session is for the page of the console alone. Programs send an admin token.'
  throw new ApiError('cross_site_request', message)
}

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).host : '')

/**
 * Whether the browser can have sent the request over plain HTTP without a network in between. Behind a load balancer that
 * terminates TLS the URL is plain HTTP, too, but not on loopback.
 */
function isPlainLoopback({ url }: Request): boolean {
  const { hostname, protocol } = new URL(url)
  return protocol === 'http:' && isLoopbackHost(hostname)
}

/**
 * The cookie's name. Browsers accept a `__Host-` cookie only over TLS and from exactly this host (RFC 6265bis section
 * 4.1.3.2).
 */
function cookieName(request: Request): string {
  return isPlainLoopback(request) ? 'cmr_console' : '__Host-cmr_console'
}

function cookieText(request: Request, value: string, seconds: number): string {
  const secure = isPlainLoopback(request) ? '' : '; Secure'
  return `${cookieName(request)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/**
 * Binds a session to the boot token. The digest includes the session's secret, so that the storage alone cannot be used to
 * guess tokens.
 */
function bootBinding(secret: string, adminToken: string): Promise<string> {
  return sha256Hex(`${secret} ${adminToken}`)
}
