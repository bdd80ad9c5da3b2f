import { z } from 'zod'
import { AdminApi } from './admin-api.ts'
import type { StateDir } from './state-dir.ts'

/** The customer that a local stack creates for its user. */
export interface FirstCustomer {
  readonly customerId: string
  readonly apiKey: string
}

const FILE = 'first-customer.json'
const OPENING_BALANCE_EUR = '1000.00'

const storedSchema = z.object({ customerId: z.string(), apiKey: z.string() })

/** The stored customer if its key is still valid, else a new one with a free balance. */
export async function firstCustomer(
  state: StateDir,
  baseUrl: string,
  adminToken: string,
): Promise<FirstCustomer> {
  const kept = storedCustomer(state)
  if (kept !== undefined && (await opens(baseUrl, kept.apiKey))) return kept
  const made = await makeCustomer(new AdminApi(baseUrl, adminToken))
  state.write(FILE, `${JSON.stringify(made, null, 2)}\n`)
  return made
}

/** What is stored may be empty or cut short, as after a loss of power: it is as good as none. */
function storedCustomer(state: StateDir): FirstCustomer | undefined {
  try {
    return storedSchema.parse(JSON.parse(state.read(FILE) ?? ''))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
}

async function opens(baseUrl: string, apiKey: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${apiKey}` }
  const answer = await fetch(`${baseUrl}/v1/usage?limit=1`, { headers })
  await answer.body?.cancel()
  return answer.status !== 401
}

async function makeCustomer(admin: AdminApi): Promise<FirstCustomer> {
  const customer = await admin.call('POST', '/admin/customers', {
    name: 'local',
    billing: 'prepaid',
    balance_eur: OPENING_BALANCE_EUR,
  })
  const { id } = z.object({ id: z.string() }).parse(customer)
  const key = await admin.call('POST', `/admin/customers/${id}/keys`, { name: 'local' })
  return { customerId: id, apiKey: z.object({ key: z.string() }).parse(key).key }
}
