import { requireAdmin } from '../auth/authenticate.ts'
import type { Handler } from '../context.ts'

/** A handler for the holder of the admin token alone. */
export function asAdmin(handler: Handler): Handler {
  return async (request, context, params) => {
    await requireAdmin(request, context.adminToken)
    return handler(request, context, params)
  }
}
