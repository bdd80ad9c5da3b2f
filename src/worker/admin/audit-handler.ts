import { ApiError } from '../http/errors.ts'
import { readLimit } from '../http/query.ts'
import { json } from '../http/reply.ts'
import { asAdmin } from './as-admin.ts'
import { listActions } from './audit-log.ts'

/** GET /admin/audit, newest first; paged with `limit` and `before` (the last id of the previous page). */
export const listAudit = asAdmin(async (request, { storage }) => {
  const query = new URL(request.url).searchParams
  const limit = readLimit(query)
  const before = query.get('before') ?? undefined
  if (before !== undefined && !/^[0-9a-f-]{36}$/.test(before)) throw unlisted()
  const entries = await listActions(storage.directory(), { limit: limit + 1, before })
  // An empty page would suggest to an auditor that the log ends here.
  if (entries === undefined) throw unlisted()
  return json({ data: entries.slice(0, limit), has_more: entries.length > limit })
})

function unlisted(): ApiError {
  return new ApiError('invalid_parameter', '`before` names no entry.', { param: 'before' })
}
