import { equalBytes, toHex, utf8 } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { ApiError } from '../http/errors.ts'
import type { Storage } from '../storage/database.ts'
import { numberOf, optionalTextOf } from '../storage/row.ts'
import { int64, sql } from '../storage/sql.ts'
import type { Random } from './api-key.ts'

/**
 * Sessions of browsers, begun with an admin token: a secret in a cookie that no script can read. The storage has its digest
 * and which token it stands for. A session may do what that token may, and ends with it.
 */

const SESSION_MS = 2 * 3_600_000

const SECRET_BYTES = 32
const SECRET = /^[0-9a-f]{64}$/

/** Another origin's page could send it only after a preflight, which the endpoints of operators never grant. */
const OWN_PAGE_HEADER = 'x-cmr-console'

/** What recognising an administrator takes of a context. */
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
 * Begins a session. Its secret is always a new one, whatever cookie the request brought.
 * @throws StorageUnavailable
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
 * The session of a request, if it brings one that is in force, and when it ends.
 * @throws ApiError `cross_site_request` for a request that the console's own page did not make; `session_ended`
 * @throws StorageUnavailable
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
  // The boot token was replaced since.
  if (tokenId === null && (adminToken === '' || !isBoot)) throw sessionEnded()
  return { tokenId, expiresAt: numberOf(row, 'expires_at') }
}

/** Ends the session of a request; nothing happens without one. @returns the `Set-Cookie` that removes the cookie */
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

/** The session is over, was ended, or its token is not in force any more. */
export function sessionEnded(): ApiError {
  return new ApiError('session_ended', 'The session has ended. Sign in again.')
}

/** Two cookies of the name: somebody else has put one of them there, and neither counts. */
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

/** Beside `SameSite=Strict`, which lets pages of sibling domains and other ports of this host through. */
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
 * Whether the browser could have come over plain HTTP without a network between. Before a balancer that ends TLS the
 * address is a plain one too, but not of loopback.
 */
function isPlainLoopback({ url }: Request): boolean {
  const { hostname, protocol } = new URL(url)
  return protocol === 'http:' && isLoopbackHost(hostname)
}

/** With the prefix `__Host-` a browser takes it over TLS from this very host alone (RFC 6265bis section 4.1.3.2). */
function cookieName(request: Request): string {
  return isPlainLoopback(request) ? 'cmr_console' : '__Host-cmr_console'
}

function cookieText(request: Request, value: string, seconds: number): string {
  const secure = isPlainLoopback(request) ? '' : '; Secure'
  return `${cookieName(request)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}

/** Under the session's secret: who has only the storage cannot try tokens against it. */
function bootBinding(secret: string, adminToken: string): Promise<string> {
  return sha256Hex(`${secret} ${adminToken}`)
}
