import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import { z } from 'zod'
import { PROMPT } from './ask.ts'
import type { Customer, World } from './world.ts'

/** The API formats besides Chat Completions, and what is compared of their streams. */

const BODIES = {
  '/v1/responses': { input: PROMPT },
  '/v1/messages': { max_tokens: 1_000, messages: [{ role: 'user', content: PROMPT }] },
} as const

export type ApiPath = keyof typeof BODIES

export const API_FORMATS: readonly ApiPath[] = ['/v1/responses', '/v1/messages']

/** Who asks, and where. */
export interface Asker {
  readonly world: World
  readonly customer: Customer
}

/** Further members of the body, and further headers. */
export interface Extra {
  readonly more?: object
  readonly headers?: object
}

/** Status and body of a streamed answer. */
export async function askApi(
  { world, customer }: Asker,
  api: ApiPath,
  model: string,
  { more, headers }: Extra = {},
): Promise<string> {
  const answer = await world.stack.fetch(api, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${customer.key}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify({ model, stream: true, ...BODIES[api], ...more }),
  })
  return `${answer.status} ${await answer.text()}`
}

/** An answer without what differs from request to request: its ids, its time, its route, and the comments in between. */
export function comparable(answer: string): string {
  return answer
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replaceAll(/(alpha|beta)\/(m\d+-\w+|sound)-[pd]/g, 'ROUTE')
    .replaceAll(/(m\d+-\w+|sound)-[pd]/g, 'MODEL')
    .replaceAll(': keep-alive\n\n', '')
}

const usageSchema = z.object({
  data: z.array(
    z.object({
      model: z.string(),
      prompt_tokens: z.int(),
      completion_tokens: z.int(),
      receipt_id: z.string().nullable(),
    }),
  ),
})

/** What the last request of a model was billed, and how often it was billed. */
export async function billOf(
  { world, customer }: Asker,
  model: string,
  requests: number,
): Promise<string> {
  const headers = { authorization: `Bearer ${customer.key}` }
  const query = new URLSearchParams({ limit: '1000', model })
  const { data } = usageSchema.parse(
    await (await world.stack.fetch(`/v1/usage?${query}`, { headers })).json(),
  )
  const [row] = data
  if (row === undefined) return 'no row'
  const times = data.length > requests ? `${data.length} rows of ${requests} requests, ` : ''
  return `${times}${row.prompt_tokens}+${row.completion_tokens}, ${row.receipt_id === null ? 'no' : 'a'} receipt`
}

const receiptSchema = z.object({ receipt: z.string() })

/** The digest of the client's bytes by the receipt that a complete answer names, and by its bytes. */
export async function digestsOf(
  { world, customer }: Asker,
  answer: string,
): Promise<readonly unknown[]> {
  const text = answer.slice('200 '.length)
  const receiptId = /"receipt_id":"([^"]+)"/.exec(text)?.[1]
  if (receiptId === undefined) return []
  const headers = { authorization: `Bearer ${customer.key}` }
  const found = await world.stack.fetch(`/v1/receipts/${receiptId}`, { headers })
  const claims = decodeJwt(receiptSchema.parse(await found.json()).receipt)
  const covered = text.slice(0, text.lastIndexOf('event: '))
  return [claims['client_response_digest'], createHash('sha256').update(covered).digest('hex')]
}
