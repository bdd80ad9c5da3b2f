import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import type { Stack } from './stack.ts'

/** A running router as far as a customer of its own needs it. */
export interface RouterAddress {
  readonly baseUrl: string
  readonly adminToken: string
}

/** Where a running stack is found. */
export function routerOf({ local }: Pick<Stack, 'local'>): RouterAddress {
  return { baseUrl: local.base_url, adminToken: local.admin_token }
}

/** A customer made for one test. */
export interface TestCustomer {
  readonly id: string
  readonly key: string
  /** The customer as the admin interface shows it. */
  show(): Promise<z.output<typeof customerSchema>>
}

const customerSchema = z.looseObject({
  id: z.string(),
  balance_eur: z.string(),
  reserved_eur: z.string(),
})

const keySchema = z.looseObject({ key: z.string() })

/** Makes a customer, prepaid and with nothing unless told otherwise, and one key. */
export async function newCustomer(
  router: RouterAddress,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<TestCustomer> {
  const admin = new AdminApi(router.baseUrl, router.adminToken)
  const body = { name: 'test', billing: 'prepaid', ...fields }
  const { id } = customerSchema.parse(await admin.call('POST', '/admin/customers', body))
  const made = await admin.call('POST', `/admin/customers/${id}/keys`, { name: 'test' })
  return {
    id,
    key: keySchema.parse(made).key,
    show: async () => customerSchema.parse(await admin.call('GET', `/admin/customers/${id}`)),
  }
}

export interface ChatInit {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** A chat request of a customer. */
export function chatAs(
  { baseUrl }: Pick<RouterAddress, 'baseUrl'>,
  { key }: Pick<TestCustomer, 'key'>,
  body: object,
  { headers = {}, signal }: ChatInit = {},
): Promise<Response> {
  return fetch(`${baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...headers },
    signal: signal ?? null,
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello!' }], ...body }),
  })
}
