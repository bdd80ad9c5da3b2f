import { z } from 'zod'
import { PROVIDER_WORDS } from './answers.ts'
import type { Customer, World } from './world.ts'

/** Asks the router as a client and puts what came in a few words. */

/** Stands in every prompt; it must come back from nowhere but the provider. */
export const PROMPT = 'XPROMPTX!'

/** What the router itself counts for that prompt: ceil(bytes / 3) + 16. */
export const PROMPT_ESTIMATE = Math.ceil(PROMPT.length / 3) + 16

/** A text as the table shows it: megabytes are shown by their length. */
export function inQuotes(text: string): string {
  return text.length > 200 ? `"${text.slice(0, 9)}…" of ${text.length}` : JSON.stringify(text)
}

export interface Ask {
  readonly model: string
  readonly stream: boolean
  /** Further members of the body. */
  readonly more?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** What a client saw of one answer. */
export interface Heard {
  /** `200 stop "text"`, `200 "text" then <code>`, `<status> <code>`, with what is wrong about it appended. */
  readonly words: string
  readonly requestId: string
  readonly receiptId: string | undefined
  readonly text: string
  readonly milliseconds: number
}

export async function ask(world: World, customer: Customer, request: Ask): Promise<Heard> {
  const begun = performance.now()
  const messages = [{ role: 'user', content: PROMPT }]
  const { model, stream, more, headers } = request
  const answer = await world.stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${customer.key}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify({ model, stream, messages, ...more }),
  })
  const text = await answer.text()
  const milliseconds = performance.now() - begun
  const said = answer.status === 200 ? successWords(text, stream) : errorWords(answer, text)
  const faults = [
    ...(text.includes(PROVIDER_WORDS) ? ['leaks the provider’s words'] : []),
    ...(text.includes(PROMPT) ? ['repeats the prompt'] : []),
    ...said.faults,
  ]
  return {
    words: [said.words, ...faults].join(', but '),
    requestId: answer.headers.get('x-request-id') ?? '',
    receiptId: said.receiptId,
    text: said.text,
    milliseconds,
  }
}

interface Said {
  readonly words: string
  readonly faults: readonly string[]
  readonly receiptId?: string | undefined
  readonly text: string
}

const errorSchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), type: z.string() }),
})

function errorWords(answer: Response, text: string): Said {
  const wait = answer.headers.get('retry-after')
  const code = codeIn(text)
  const words = `${answer.status} ${code}${wait === null ? '' : `, retry after ${wait}`}`
  return { words, faults: [], text: '' }
}

function codeIn(text: string): string {
  try {
    return errorSchema.parse(JSON.parse(text)).error.code
  } catch {
    return 'without an error body'
  }
}

const toolCallSchema = z.object({
  index: z.int().optional(),
  id: z.string().min(1).optional(),
  function: z.object({ name: z.string().optional(), arguments: z.string() }),
})

const messageSchema = z.object({
  role: z.literal('assistant').optional(),
  content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(toolCallSchema).optional(),
})

const choiceSchema = z.object({
  delta: messageSchema.optional(),
  message: messageSchema.optional(),
  finish_reason: z.string().nullable(),
})

const completionSchema = z.looseObject({
  id: z.string().min(1),
  model: z.string(),
  choices: z.array(choiceSchema).min(1),
  service: z
    .looseObject({ receipt_id: z.string().optional(), routed_model: z.string() })
    .optional(),
})

function successWords(text: string, stream: boolean): Said {
  return stream ? streamWords(text) : wholeWords(text)
}

function wholeWords(text: string): Said {
  const { choices, service, model } = completionSchema.parse(JSON.parse(text))
  const [choice] = choices
  const shown = textOf(choice?.message ?? {})
  const faults = service?.routed_model === model ? [] : ['service names another route than model']
  const words = `200 ${choice?.finish_reason} ${inQuotes(shown)}`
  return { words, faults, receiptId: service?.receipt_id, text: shown }
}

function streamWords(body: string): Said {
  const events = body.split('\n\n').filter((part) => part !== '' && !part.startsWith(':'))
  const data = events.map((part) => part.replace(/^data: /, ''))
  const faults: string[] = []
  const done = data.at(-1) === '[DONE]'
  if (done) data.pop()
  const failed = codeIn(data.at(-1) ?? '')
  const broken = failed !== 'without an error body'
  if (broken) data.pop()
  if (broken && done) faults.push('says [DONE] after an error')
  if (!broken && !done) faults.push('ends without [DONE]')
  const chunks = data.map((part) => completionSchema.parse(JSON.parse(part)))
  const deltas = chunks.map(({ choices }) => choices[0]?.delta ?? {})
  const roles = deltas.filter(({ role }) => role !== undefined).length
  if (chunks.length > 0 && roles !== 1) faults.push(`names the role ${roles} times`)
  if (new Set(chunks.map(({ id, model }) => `${id} ${model}`)).size > 1)
    faults.push('changes its id')
  const last = chunks.at(-1)
  const finish = last?.choices[0]?.finish_reason
  if (broken && typeof finish === 'string') faults.push('finishes before an error')
  const shown = deltas.map(textOf).join('')
  const words = broken
    ? `200 ${inQuotes(shown)} then ${failed}`
    : `200 ${finish} ${inQuotes(shown)}`
  return { words, faults, receiptId: last?.service?.receipt_id, text: shown }
}

/** Text, and tool calls as `name#index(arguments)`, in the pieces in which they came. */
function textOf(message: z.output<typeof messageSchema>): string {
  const calls = (message.tool_calls ?? []).map(
    ({ index, function: called }) =>
      `${called.name === undefined ? '' : `${called.name}#${index ?? ''}`}${called.arguments}`,
  )
  return [message.reasoning ?? '', message.content ?? '', ...calls].join('')
}
