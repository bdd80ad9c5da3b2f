import { z } from 'zod'
import { beginSession, endSession } from '../auth/admin-session.ts'
import {
  ADMIN_SCOPES,
  requireAdmin,
  requireToken,
  type Administrator,
} from '../auth/admin-token.ts'
import type { Context, Handler } from '../context.ts'
import { json } from '../http/reply.ts'
import { enterAction, enterOutcome } from './audit-log.ts'
import { noBody } from './as-admin.ts'
import { readJson } from './read-body.ts'

/** Who is signed in, and until when. */
export const sessionSchema = z.object({
  name: z.string().describe('Of the token; `boot` for that of the configuration.'),
  scope: z.enum(ADMIN_SCOPES),
  expires_at: z.iso.datetime().nullable().describe('Of the session; null without one.'),
})

/**
 * POST /admin/session, with an admin token: begins a session of a browser, and ends the one that the browser had. A session
 * cannot begin another one, because it could then renew itself for ever.
 */
export const createSession: Handler = async (request, context) => {
  const administrator = await requireToken(request, context)
  await readJson(request, noBody, context)
  return entered('session.begin', administrator, context, async () => {
    await endSession(request, context)
    const { cookie, expiresAt } = await beginSession(request, administrator, context)
    return json(viewOf({ ...administrator, sessionEndsAt: expiresAt }), { 'set-cookie': cookie })
  })
}

/** GET /admin/session: the name, scope and expiry of the session or token. */
export const showSession: Handler = async (request, context) =>
  json(viewOf(await requireAdmin(request, 'read', context)))

/** DELETE /admin/session: signs out. A copy of the cookie is invalid from then on. */
export const deleteSession: Handler = async (request, context) => {
  const administrator = await requireAdmin(request, 'read', context)
  return entered('session.end', administrator, context, async () =>
    json({ ended: true }, { 'set-cookie': await endSession(request, context) }),
  )
}

/** Writes an action to the audit log, performs it, and writes its successful outcome. */
async function entered(
  action: string,
  administrator: Administrator,
  { requestId: id, storage, now }: Context,
  perform: () => Promise<Response>,
): Promise<Response> {
  const directory = storage.directory()
  await enterAction(directory, { id, administrator, action, target: null, changes: {} }, now())
  const answer = await perform()
  await enterOutcome(directory, { id, status: answer.status, created: null })
  return answer
}

function viewOf({ name, scope, sessionEndsAt }: Administrator): z.output<typeof sessionSchema> {
  const expiresAt = sessionEndsAt === null ? null : new Date(sessionEndsAt).toISOString()
  return { name, scope, expires_at: expiresAt }
}
