import { requireAdmin } from '../auth/admin-token.ts'
import type { Handler } from '../context.ts'
import { oneOf, readLimit, readParameter } from '../http/query.ts'
import { json } from '../http/reply.ts'
import { listDeliveries } from './outbox.ts'
import { runWebhooks } from './run.ts'

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const

/** GET /admin/webhooks/deliveries: the deliveries of events to endpoints, newest event first. */
export const listWebhookDeliveries: Handler = async (request, context) => {
  await requireAdmin(request, 'read', context)
  const query = new URL(request.url).searchParams
  const state = readParameter(query, 'state', oneOf(DELIVERY_STATES))
  const page = { limit: readLimit(query), state }
  return json({ data: await listDeliveries(context.storage.directory(), page) })
}

/**
 * POST /admin/webhooks/run: detects changes to report and delivers what is due. The host calls it periodically, so it
 * is not written to the audit log.
 */
export const runWebhookRound: Handler = async (request, context) => {
  await requireAdmin(request, 'all', context)
  const { webhooks } = context.config.service
  if (webhooks === undefined) return json({ reported: 0, delivered: 0, failed: 0 })
  return json(await runWebhooks(context, webhooks))
}
