import { decodeJwt } from 'jose'
import { z } from 'zod'
import type { Heard } from './ask.ts'
import { PRICES, type Customer, type World } from './world.ts'

/** What the router wrote down about a request, in a few words. */

const usageSchema = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      model: z.string(),
      provider: z.enum(['alpha', 'beta', 'closed']),
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      cost_eur: z.number(),
      receipt_id: z.string().nullable(),
      failover: z.boolean(),
    }),
  ),
})

const customerSchema = z.object({ balance_eur: z.string(), reserved_eur: z.string() })

const OPENING_NANO = 10_000_000_000

/**
 * The rows of a customer: `no row`, or `alpha 7+5, receipt` for each; with anything wrong about the money or
 * the receipt appended. What was billed must be exact, what was reserved must be given back.
 */
export async function ledgerTextOf(
  world: World,
  customer: Customer,
  heard?: Heard,
): Promise<string> {
  const authorization = `Bearer ${customer.key}`
  const answer = await world.stack.fetch('/v1/usage', { headers: { authorization } })
  const { data } = usageSchema.parse(await answer.json())
  const view = customerSchema.parse(
    await world.admin.call('GET', `/admin/customers/${customer.id}`),
  )
  let billed = 0
  const rows = data.map((row) => {
    const price = PRICES[row.provider]
    const cost =
      1000 *
      (row.prompt_tokens * price.input_per_mtok + row.completion_tokens * price.output_per_mtok)
    billed += cost
    const faults = [
      ...(Math.round(row.cost_eur * 1e9) === cost ? [] : [`costs ${row.cost_eur}`]),
      ...(heard && row.id !== heard.requestId ? ['has another id'] : []),
      ...(heard && row.receipt_id !== (heard.receiptId ?? null) ? ['names another receipt'] : []),
    ]
    const receipt = row.receipt_id === null ? 'no receipt' : 'receipt'
    const entry = row.failover ? ' (failover)' : ''
    const words = `${row.provider} ${row.prompt_tokens}+${row.completion_tokens}${entry}, ${receipt}`
    return [words, ...faults].join(', but ')
  })
  const spent = OPENING_NANO - Math.round(Number(view.balance_eur) * 1e9)
  const faults = [
    ...(spent === billed ? [] : [`${spent} nano are gone instead of ${billed}`]),
    ...(Number(view.reserved_eur) === 0 ? [] : [`${view.reserved_eur} EUR stay reserved`]),
    ...(await receiptFaults(world, authorization, heard, data[0]?.provider)),
  ]
  return [rows.join(' and ') || 'no row', ...faults].join(', but ')
}

/** A receipt that was named must exist and cover the provider's exact bytes. */
async function receiptFaults(
  world: World,
  authorization: string,
  heard: Heard | undefined,
  provider: string | undefined,
): Promise<string[]> {
  if (heard?.receiptId === undefined) return []
  const answer = await world.stack.fetch(`/v1/receipts/${heard.receiptId}`, {
    headers: { authorization },
  })
  if (answer.status !== 200) return ['the receipt is not there']
  const { receipt } = z.object({ receipt: z.string() }).parse(await answer.json())
  const claims = decodeJwt(receipt)
  const call = world.provider
    .calls(String(claims['routed_model']).split('/').at(-1) ?? '')
    .findLast((made) => made.provider === provider)
  return claims['response_digest'] === call?.wire.digest()
    ? []
    : ['the receipt speaks of other bytes']
}

const routesSchema = z.object({
  data: z.array(
    z.object({
      route: z.string(),
      state: z.string(),
      errors: z.int(),
      last_failure: z.string().nullable(),
    }),
  ),
})

/** The health of a route as the operator sees it: `closed`, or `open, 1 rate_limited`. */
export async function healthOf(world: World, route: string): Promise<string> {
  const { data } = routesSchema.parse(await world.admin.call('GET', '/admin/routes'))
  const found = data.find((entry) => entry.route === route)
  if (!found) return 'unknown route'
  const { state, errors, last_failure: kind } = found
  return errors === 0 ? state : `${state}, ${errors} ${kind}`
}

/** Waits until the ledger shows what is expected; where it never does, half a minute. */
export async function settledLedger(
  world: World,
  customer: Customer,
  expected: (ledger: string) => boolean,
): Promise<string> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const ledger = await ledgerTextOf(world, customer)
    if (expected(ledger) || performance.now() > deadline) return ledger
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
