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

/** An answer with the exact bytes that its receipt covers. */
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

/**
 * Requests a streamed answer and reports its text as it grows.
 * @throws ApiFailure when the router refuses, or the stream ends in an error
 */
export async function ask(question: Question, grown: (text: string) => void): Promise<Asked> {
  const { apiKey, model, reasoning, failover, messages } = question
  const body = JSON.stringify({
    model,
    messages,
    stream: true,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(failover.length === 0 ? {} : { failover }),
  })
  const answer = await send(apiKey, body)
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
  return { text, request: utf8(body), response: concatBytes(...parts), receiptId }
}

async function send(apiKey: string, body: string): Promise<Response> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  let answer: Response
  try {
    answer = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers,
      body,
      credentials: 'omit',
    })
  } catch (cause) {
    throw new ApiFailure(0, 'The router does not answer.', { cause })
  }
  if (answer.status === 200) return answer
  const message = messageOf(await answer.text()) ?? `The router answers ${answer.status}.`
  throw new ApiFailure(answer.status, message)
}

function chunkOf(event: string): z.output<typeof chunkSchema>[] {
  const data = /^data: ?(.*)$/m.exec(event)?.[1]
  if (data?.startsWith('{') !== true) return []
  const chunk = chunkSchema.safeParse(JSON.parse(data))
  return chunk.success ? [chunk.data] : []
}
