import { utf8 } from '../../protocol/bytes.ts'
import { enterDeps, type Context, type Handler } from '../context.ts'
import { authenticate } from '../auth/authenticate.ts'
import { csvStream, wantsCsv } from '../http/csv.ts'
import { ApiError } from '../http/errors.ts'
import { jsonText } from '../http/reply.ts'
import { pause } from '../routing/budget.ts'
import { StorageUnavailable } from '../storage/database.ts'
import { usageCsv } from './export.ts'
import { usageLedgerOf, type UsageLedger } from './ledger.ts'
import { readRowsBefore, readUsagePage, type UsagePage } from './page.ts'
import { readUsageQuery, type UsageQuery } from './query.ts'
import { usageRowJson } from './row-json.ts'

/** The cost of a read in turns: a page of a thousand rows takes as much CPU time as four small requests. */
const READ_COST = 4

/**
 * The pause after a customer's query, as a multiple of the query's own duration without its wait for a turn, and its
 * maximum, ms.
 */
const PAUSE_RATIO = 3
const MAX_PAUSE_MS = 5_000

const RETRY_AFTER_SECONDS = 5

/** What reading a ledger needs from the context. */
type ReadContext = Pick<Context, 'storage' | 'shared' | 'now' | 'client' | 'inTurn' | 'waitUntil'>

/** `GET /v1/usage`: the caller's own ledger, newest first, in JSON or CSV. */
export const listUsage: Handler = async (request, context) => {
  if (wantsCsv(request.headers)) return exportUsage(request, context)
  const { customerId } = await context.inTurn(1, () => authenticate(request, context))
  const query = readUsageQuery(new URL(request.url).searchParams)
  const page = await queryLedger(() =>
    readUsagePage(ledgerWithPauses(customerId, context), customerId, query),
  )
  return usagePage(page, query)
}

/** A page of the ledger in JSON; money with all its digits. */
export function usagePage(
  { rows, total }: UsagePage,
  { limit, offset }: Pick<UsageQuery, 'limit' | 'offset'>,
): Response {
  const data = rows.map(usageRowJson).join(',')
  const tail = JSON.stringify({ total_count: total, limit, offset })
  return jsonText(utf8(`{"data":[${data}],${tail.slice(1)}`))
}

/** Answers with CSV: every row of the query, or at most `limit`, read in pages as the client consumes them. */
async function exportUsage(request: Request, context: Context): Promise<Response> {
  const { customerId } = await context.inTurn(1, () => authenticate(request, context))
  const parameters = new URL(request.url).searchParams
  const query = readUsageQuery(parameters)
  const ledger = ledgerWithPauses(customerId, context)
  const readBefore = (seq: number | undefined, count: number) =>
    readRowsBefore(ledger, customerId, query, { seq, count })
  const limit = parameters.has('limit') ? query.limit : Number.POSITIVE_INFINITY
  return csvStream('usage.csv', usageCsv(readBefore, limit))
}

/**
 * A customer's ledger whose reads take turns with those of all customers. After each read, the customer's next one waits for
 * some time: reading a part of a large ledger takes the storage tens of milliseconds, during which no other request is
 * served.
 */
export function ledgerWithPauses(
  customerId: string,
  { storage, shared, now, client, inTurn, waitUntil }: ReadContext,
): UsageLedger {
  const ledger = storage.customer(customerId)
  const read: UsageLedger['read'] = async (statements) => {
    const place = await shared.queries.enter(customerId, 1, enterDeps({ now, client }))
    let tookMs = 0
    try {
      return await inTurn(READ_COST, async () => {
        const startedAt = now()
        try {
          return await ledger.batch(statements)
        } finally {
          tookMs = now() - startedAt
        }
      })
    } finally {
      const pauseMs = Math.min(PAUSE_RATIO * tookMs, MAX_PAUSE_MS)
      waitUntil(pause(pauseMs).then(() => place.leave()))
    }
  }
  return usageLedgerOf(ledger, (statements) => {
    const reading = read(statements)
    // If the client of an export disconnects, the runtime would cancel the read; it must continue to release its place.
    waitUntil(reading.catch(() => {}))
    return reading
  })
}

/**
 * Runs the query. An unexpected failure becomes `internal`; a storage that does not answer, and a read whose turn does not
 * come, keep their own errors.
 */
async function queryLedger(query: () => Promise<UsagePage>): Promise<UsagePage> {
  try {
    return await query()
  } catch (error) {
    if (error instanceof StorageUnavailable || error instanceof ApiError) throw error
    throw new ApiError('internal', 'The ledger could not be queried.', {
      retryAfter: RETRY_AFTER_SECONDS,
    })
  }
}
