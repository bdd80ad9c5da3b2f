import { z } from 'zod'
import type { AdminApi } from '../../src/host/stack/admin-api.ts'
import { chatCaller, type Caller } from './system.ts'

/** A customer of the router, and the path and headers of its requests. */
export interface MadeCustomer {
  readonly id: string
  readonly caller: Caller
}

/** Concurrent calls: enough for the router to write many customers in one commit. */
const CONCURRENCY = 64

/** Creates customers with one key each through the admin API. */
export async function makeCustomers(admin: AdminApi, count: number): Promise<MadeCustomer[]> {
  const made: MadeCustomer[] = []
  let begun = 0
  const connection = async () => {
    while (begun < count) {
      begun += 1
      made.push(await makeCustomer(admin))
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, connection))
  return made
}

async function makeCustomer(admin: AdminApi): Promise<MadeCustomer> {
  const customer = await admin.call('POST', '/admin/customers', {
    name: 'bench',
    billing: 'postpaid',
  })
  const { id } = z.object({ id: z.string() }).parse(customer)
  const answer = await admin.call('POST', `/admin/customers/${id}/keys`, { name: 'bench' })
  const { key } = z.object({ key: z.string() }).parse(answer)
  return { id, caller: chatCaller({ authorization: `Bearer ${key}` }) }
}
