import { ApiError } from '../http/errors.ts'
import { json } from '../http/reply.ts'
import { formatNano } from '../../protocol/money.ts'
import { listQuarantined, settleQuarantined } from '../settle/quarantine.ts'
import { StatementRefused } from '../storage/batch-outcome.ts'
import { asAdmin, audited, noBody } from './as-admin.ts'

/** Maximum number of listed settlements; the oldest come first. */
const MAX_LISTED = 1000

/** GET /admin/quarantine: settlements of delivered answers that the storage refuses to record, oldest first. */
export const listQuarantine = asAdmin(async (_request, { storage }) => {
  const kept = await listQuarantined(storage.directory(), MAX_LISTED)
  const data = kept.map(({ requestId, customerId, createdAtMs, settlement: { row } }) => ({
    request_id: requestId,
    customer_id: customerId,
    model: row.model,
    provider: row.provider,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    cost_eur: formatNano(row.cost.nano),
    created_at: new Date(createdAtMs).toISOString(),
  }))
  return json({ data })
})

/** POST /admin/quarantine/{request_id}/settle: tries again to record the settlement. */
export const settleOne = audited(
  { action: 'quarantine.settle', scope: 'all', body: noBody },
  async (_body, { storage, now }, { request_id: requestId = '' }) => {
    const databases = {
      directory: storage.directory(),
      customer: (id: string) => storage.customer(id),
    }
    const settled = await settleQuarantined(databases, requestId, now()).catch((error: unknown) => {
      if (!(error instanceof StatementRefused)) throw error
      throw new ApiError('invalid_request_error', 'The storage still refuses this settlement.')
    })
    if (!settled) throw new ApiError('not_found', 'There is no such settlement in quarantine.')
    return { answer: { request_id: requestId, settled } }
  },
)
