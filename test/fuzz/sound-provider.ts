import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '../support/listen.ts'

/** A provider that always answers well, and looks closely at what the router makes of a hostile request. */
export interface SoundProvider {
  readonly port: number
  /** What was wrong with the requests that came, in words. */
  readonly complaints: readonly string[]
  /** How many came. */
  readonly calls: number
  close(): Promise<void>
}

const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const STREAM = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: USAGE },
]
  .map((data) => `data: ${JSON.stringify({ id: 'x', model: 'm', ...data })}\n\n`)
  .concat('data: [DONE]\n\n')
  .join('')
const WHOLE = JSON.stringify({
  id: 'x',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: USAGE,
})
const TRANSCRIPT = JSON.stringify({ text: 'Hello', duration: 1.5, language: 'en', segments: [] })

/** What only the router itself may receive. */
const SERVICE_MEMBERS = ['failover', 'service', 'include_reasoning', 'reasoning']

export async function startSoundProvider(upstreamModel: string): Promise<SoundProvider> {
  const complaints: string[] = []
  let calls = 0
  const server = createServer((request, response) => {
    calls += 1
    const answer = request.url?.endsWith('/chat/completions')
      ? chat(request, response, upstreamModel)
      : transcription(request, response)
    answer.catch((error: unknown) => {
      complaints.push(String(error))
      response.destroy()
    })
  })
  return {
    port: await listen(server),
    complaints,
    get calls() {
      return calls
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function chat(
  request: IncomingMessage,
  response: ServerResponse,
  upstreamModel: string,
): Promise<void> {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(await bodyOf(request))
  const body: Record<string, unknown> = JSON.parse(text)
  const smuggled = SERVICE_MEMBERS.filter((name) => Object.hasOwn(body, name))
  if (smuggled.length > 0)
    throw new Error(`members that are none of its business: ${smuggled.join(', ')}`)
  if (body['model'] !== upstreamModel) throw new Error('another model')
  if (!Array.isArray(body['messages'])) throw new Error('messages that are no list')
  const stream = body['stream'] === true
  response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json')
  response.end(stream ? STREAM : WHOLE)
}

async function transcription(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await bodyOf(request)
  response.setHeader('content-type', 'application/json')
  response.end(TRANSCRIPT)
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}
