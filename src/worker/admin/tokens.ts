import { z } from 'zod'
import { sha256Hex } from '../../protocol/digest.ts'
import { ADMIN_SCOPES } from '../auth/admin-token.ts'
import { ApiError } from '../http/errors.ts'
import { json } from '../http/reply.ts'
import type { Row } from '../storage/database.ts'
import { numberOf, optionalNumberOf, textOf } from '../storage/row.ts'
import { int64, nullableInt64, sql } from '../storage/sql.ts'
import { asAdmin, audited, noBody } from './as-admin.ts'
import { newTokenSchema } from './bodies.ts'

/** A named admin token, without the token itself. */
export const tokenViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  scope: z.enum(ADMIN_SCOPES),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
})

type TokenView = z.output<typeof tokenViewSchema>

/**
 * POST /admin/tokens: creates a token. Only this answer contains the token itself. An expiry in the past is refused, as for
 * a key.
 */
export const createToken = audited(
  { action: 'tokens.create', scope: 'all', body: newTokenSchema },
  async ({ name, scope, expires_at: expiresAt = null }, context) => {
    const now = context.now()
    if (expiresAt !== null && expiresAt <= now) throw endsBeforeItBegins()
    const { id, token } = context.keyring.newAdminToken()
    const [, rows = []] = await context.storage.directory().batch([
      sql`INSERT INTO admin_tokens (token_id, token_hash, name, scope, created_at, expires_at)
        VALUES (${id}, ${await sha256Hex(token)}, ${name}, ${scope}, ${int64(now)}, ${nullableInt64(expiresAt)})`,
      sql`SELECT token_id, name, scope, created_at, expires_at FROM admin_tokens WHERE token_id = ${id}`,
    ])
    const [row] = rows
    if (row === undefined) throw new Error('internal error: the token was not stored')
    return { answer: { token, ...viewOf(row) }, created: id }
  },
)

/** GET /admin/tokens: the tokens that are not revoked, oldest first. */
export const listTokens = asAdmin(async (_request, { storage }) => {
  const [rows = []] = await storage.directory().batch([
    sql`SELECT token_id, name, scope, created_at, expires_at FROM admin_tokens
      WHERE revoked_at IS NULL ORDER BY created_at, token_id`,
  ])
  return json({ data: rows.map(viewOf) })
})

/** DELETE /admin/tokens/{id}: revokes a token at once. */
export const revokeToken = audited(
  { action: 'tokens.revoke', scope: 'all', body: noBody },
  async (_body, { storage, now }, { id = '' }) => {
    const [rows = []] = await storage.directory().batch([
      sql`UPDATE admin_tokens SET revoked_at = ${int64(now())}
        WHERE token_id = ${id} AND revoked_at IS NULL RETURNING token_id`,
    ])
    if (rows.length === 0) throw new ApiError('not_found', 'There is no such admin token.')
    return { answer: { id, revoked: true } }
  },
)

function endsBeforeItBegins(): ApiError {
  const message = '"expires_at" is in the past: the token could never be used.'
  return new ApiError('invalid_request_error', message, { param: 'expires_at' })
}

function viewOf(row: Row): TokenView {
  const expiresAt = optionalNumberOf(row, 'expires_at')
  return {
    id: textOf(row, 'token_id'),
    name: textOf(row, 'name'),
    scope: z.enum(ADMIN_SCOPES).parse(row['scope']),
    created_at: new Date(numberOf(row, 'created_at')).toISOString(),
    expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  }
}
