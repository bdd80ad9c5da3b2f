import { z } from 'zod'
import type { AdminApi } from '../../src/host/stack/admin-api.ts'
import type { Customer } from '../faults/world.ts'
import { together } from '../faults/trial.ts'
import type { Stack } from '../support/stack.ts'

/** What a client knows of a request that it made. */
export interface Outcome {
  readonly customer: Customer
  readonly requestId: string
  /** `complete`: an answer to its end. `failed`: an error status. `open`: anything between, row or no row. */
  readonly kind: 'complete' | 'failed' | 'open'
  readonly receiptId?: string | undefined
}

export interface Ledger {
  readonly faults: readonly string[]
  readonly rows: number
  readonly receipts: number
}

const usageSchema = z.object({
  data: z.array(
    z.object({ id: z.string(), cost_eur: z.number(), receipt_id: z.string().nullable() }),
  ),
  total_count: z.int(),
})
type Row = z.output<typeof usageSchema>['data'][number]

const customerSchema = z.object({ balance_eur: z.string(), reserved_eur: z.string() })

const PAGE = 1_000
const AT_A_TIME = 16
const nano = (eur: number | string) => Math.round(Number(eur) * 1e9)

/**
 * Compares what clients saw with the ledger: each complete answer has one row and its receipt, a refusal has
 * none, and of each balance exactly what the rows say is gone, with nothing held back.
 */
export async function checkLedger(
  { stack, admin }: { readonly stack: Stack; readonly admin: AdminApi },
  customers: readonly Customer[],
  openingEur: string,
  outcomes: readonly Outcome[],
): Promise<Ledger> {
  const byCustomer = Map.groupBy(outcomes, ({ customer }) => customer.id)
  const checked = await together(customers, AT_A_TIME, async (customer) => {
    const rows = await rowsOf(stack, customer)
    const known = byCustomer.get(customer.id) ?? []
    const path = `/admin/customers/${customer.id}`
    const view = customerSchema.parse(await admin.call('GET', path))
    const billed = rows.reduce((sum, row) => sum + nano(row.cost_eur), 0)
    const spent = nano(openingEur) - nano(view.balance_eur)
    const faults = [
      ...rowFaults(rows, known),
      ...(spent === billed ? [] : [`${customer.id} paid ${spent} nano for rows of ${billed}`]),
      ...(nano(view.reserved_eur) === 0 ? [] : [`${customer.id}: ${view.reserved_eur} reserved`]),
    ]
    return { faults, rows: rows.length }
  })
  const named = outcomes.filter(({ receiptId }) => receiptId !== undefined)
  const missing = await together(named, AT_A_TIME, (outcome) => receiptFaults(stack, outcome))
  return {
    faults: [...checked.flatMap(({ faults }) => faults), ...missing.flat()],
    rows: checked.reduce((sum, { rows }) => sum + rows, 0),
    receipts: named.length,
  }
}

async function rowsOf(stack: Stack, { key }: Customer): Promise<readonly Row[]> {
  const headers = { authorization: `Bearer ${key}` }
  const rows: Row[] = []
  for (;;) {
    const path = `/v1/usage?limit=${PAGE}&offset=${rows.length}`
    const page = usageSchema.parse(await (await stack.fetch(path, { headers })).json())
    rows.push(...page.data)
    if (page.data.length === 0 || rows.length >= page.total_count) return rows
  }
}

function rowFaults(rows: readonly Row[], outcomes: readonly Outcome[]): string[] {
  const byId = new Map(rows.map((row) => [row.id, row]))
  const faults = outcomes.flatMap(({ kind, requestId, receiptId }) => {
    const row = byId.get(requestId)
    if (kind === 'failed' && row !== undefined) return [`${requestId} failed and was billed`]
    if (kind !== 'complete') return []
    if (row === undefined) return [`${requestId} was answered and has no row`]
    return row.receipt_id === (receiptId ?? null) ? [] : [`${requestId} has another receipt`]
  })
  return byId.size === rows.length ? faults : [...faults, 'two rows have one id']
}

async function receiptFaults(stack: Stack, { customer, receiptId }: Outcome): Promise<string[]> {
  const headers = { authorization: `Bearer ${customer.key}` }
  const answer = await stack.fetch(`/v1/receipts/${receiptId}`, { headers })
  await answer.arrayBuffer()
  return answer.status === 200 ? [] : [`receipt ${receiptId}: status ${answer.status}`]
}
