import { utf8 } from '../../protocol/bytes.ts'
import { requireAdmin, type AdminOperation } from '../auth/admin-token.ts'
import type { Context, Handler } from '../context.ts'
import { ApiError } from '../http/errors.ts'
import type { Operation } from '../http/operation.ts'
import { readParameter } from '../http/query.ts'
import { jsonText } from '../http/reply.ts'
import { hasCustomer } from '../settle/present-customer.ts'
import { usagePage } from './handler.ts'
import { USAGE_OPERATION } from './operation.ts'
import { usageLedgerOf } from './ledger.ts'
import { readUsagePage } from './page.ts'
import { readUsageQuery } from './query.ts'
import { GROUP_BY, summaryJson, USAGE_SUMMARY_OPERATION } from './summary-handler.ts'
import { summarize } from './summary.ts'

/** A customer's ledger for the operator: the same as `GET /v1/usage` and its summary show the customer. */

export const CUSTOMER_USAGE_OPERATION = forOperators(
  USAGE_OPERATION,
  'List what was billed to a customer, newest first',
)

export const CUSTOMER_SUMMARY_OPERATION = forOperators(
  USAGE_SUMMARY_OPERATION,
  'Add up what was billed to a customer, by day, model, key or provider',
)

/** GET /admin/customers/{id}/usage */
export const listCustomerUsage: Handler = async (request, context, { id = '' }) => {
  const ledger = await ledgerOf(request, context, id)
  const query = readUsageQuery(new URL(request.url).searchParams)
  return usagePage(await readUsagePage(ledger, id, query), query)
}

/** GET /admin/customers/{id}/usage/summary */
export const summarizeCustomerUsage: Handler = async (request, context, { id = '' }) => {
  const ledger = await ledgerOf(request, context, id)
  const parameters = new URL(request.url).searchParams
  const groupings = readParameter(parameters, 'group_by', GROUP_BY) ?? ['day']
  const summary = await summarize(ledger, id, readUsageQuery(parameters), groupings)
  return jsonText(utf8(summaryJson(summary)))
}

async function ledgerOf(request: Request, context: Context, id: string) {
  await requireAdmin(request, 'read', context)
  if (await context.keyring.knows(id)) {
    const db = context.storage.customer(id)
    if (await hasCustomer(db, id)) return usageLedgerOf(db)
  }
  throw new ApiError('not_found', 'There is no such customer.')
}

function forOperators({ answer, query = {} }: Operation, summary: string): AdminOperation {
  const page = answer['application/json']
  return {
    summary,
    tag: 'Admin',
    scope: 'read',
    query,
    answer: page === undefined ? {} : { 'application/json': page },
    errors: ['invalid_parameter', 'not_found'],
  }
}
