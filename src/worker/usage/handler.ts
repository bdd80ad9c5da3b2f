import { utf8 } from '../../protocol/bytes.ts'
import type { Handler } from '../context.ts'
import { authenticate, readApiKey } from '../auth/authenticate.ts'
import { ApiError } from '../http/errors.ts'
import { jsonText } from '../http/reply.ts'
import { pause } from '../routing/budget.ts'
import { StorageUnavailable, type Database } from '../storage/database.ts'
import { readUsagePage, type UsagePage } from './page.ts'
import { readUsageQuery, type UsageQuery } from './query.ts'
import { usageRowJson } from './row-json.ts'

/** A page of a thousand rows takes the thread for as long as four small requests. */
const READ_COST = 4

const RETRY_AFTER_SECONDS = 5

/** `GET /v1/usage`: the caller's own ledger, newest first. */
export const listUsage: Handler = async (request, context) => {
  const { customerId } = await readApiKey(request, context)
  const tools = { now: context.now, pause }
  const { rows, total, limit, offset } = await context.shared.queries.during(
    customerId,
    1,
    tools,
    () =>
      context.inTurn(READ_COST, async () => {
        await authenticate(request, context)
        const query = readUsageQuery(new URL(request.url).searchParams)
        const ledger = context.storage.customer(customerId)
        return { ...query, ...(await queryLedger(ledger, customerId, query)) }
      }),
  )
  const data = rows.map(usageRowJson).join(',')
  const tail = JSON.stringify({ total_count: total, limit, offset })
  return jsonText(utf8(`{"data":[${data}],${tail.slice(1)}`))
}

/**
 * Runs the query. A failing query on a storage that answers is reported differently from a storage that does not
 * answer.
 */
async function queryLedger(
  ledger: Database,
  customerId: string,
  query: UsageQuery,
): Promise<UsagePage> {
  try {
    return await readUsagePage(ledger, customerId, query)
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error
    throw new ApiError('internal', 'The ledger could not be queried.', {
      retryAfter: RETRY_AFTER_SECONDS,
    })
  }
}
