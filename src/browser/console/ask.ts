import * as z from 'zod'
import { concatBytes, utf8, type Bytes } from '../../protocol/bytes.ts'
import { ApiFailure, messageOf } from './api.ts'

/** A message of a chat. */
export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface Question {
  readonly apiKey: string
  readonly model: string
  readonly reasoning: string
  readonly failover: readonly string[]
  readonly messages: readonly Message[]
}

/**
 * An answer, with the exact bytes that its receipt covers: the request before encryption and the response after
 * decryption.
 */
export interface Asked {
  readonly text: string
  readonly request: Bytes
  readonly response: Bytes
  readonly receiptId: string | undefined
}

const chunkSchema = z.looseObject({
  choices: z
    .array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }).optional() }))
    .optional(),
  service: z.looseObject({ receipt_id: z.string().optional() }).optional(),
  error: z.looseObject({ message: z.string() }).optional(),
})

const PATH = '/v1/chat/completions'

/**
 * Requests a streamed answer and reports its text as it grows.
 * @param send sends the request; encrypts its body to the proven router
 * @param grown called with the whole text so far
 * @throws ApiFailure when the router refuses the request, or the stream ends with an error
 * @throws ClientError when the router is not proven, or the answer was changed in transit
 */
export async function ask(
  { apiKey, model, reasoning, failover, messages }: Question,
  { origin, send }: { readonly origin: string; readonly send: typeof fetch },
  grown: (text: string) => void,
): Promise<Asked> {
  const body = JSON.stringify({
    model,
    messages,
    stream: true,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(failover.length === 0 ? {} : { failover }),
  })
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const answer = await send(new URL(PATH, origin), { method: 'POST', headers, body })
  if (answer.status !== 200) {
    const message = messageOf(await answer.text()) ?? `The router answers ${answer.status}.`
    throw new ApiFailure(answer.status, message)
  }
  return { ...(await readStream(answer, grown)), request: utf8(body) }
}

async function readStream(
  answer: Response,
  grown: (text: string) => void,
): Promise<Omit<Asked, 'request'>> {
  const parts: Uint8Array[] = []
  const decoder = new TextDecoder()
  let open = ''
  let text = ''
  let receiptId: string | undefined
  const reader = answer.body?.getReader()
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    parts.push(next.value)
    const events = (open + decoder.decode(next.value, { stream: true })).split(/\r?\n\r?\n/)
    open = events.pop() ?? ''
    for (const chunk of events.flatMap(chunkOf)) {
      if (chunk.error !== undefined) throw new ApiFailure(200, chunk.error.message)
      text += chunk.choices?.[0]?.delta?.content ?? ''
      receiptId = chunk.service?.receipt_id ?? receiptId
    }
    grown(text)
  }
  return { text, response: concatBytes(...parts), receiptId }
}

function chunkOf(event: string): z.output<typeof chunkSchema>[] {
  const data = /^data: ?(.*)$/m.exec(event)?.[1]
  if (data?.startsWith('{') !== true) return []
  const chunk = chunkSchema.safeParse(JSON.parse(data))
  return chunk.success ? [chunk.data] : []
}
