import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { errorFormatAt } from '../../src/worker/http/error-format.ts'
import { ApiError, type ErrorCode } from '../../src/worker/http/errors.ts'
import { errorReply } from '../../src/worker/http/reply.ts'
import { API_FORMATS } from './api-formats.ts'
import { OPTIONS } from './golden-streams.ts'
import { listen } from './listen.ts'

/** Failures by what their clients' base URLs begin with; the answers are those of the router, byte for byte. */
export const FAILURES = [
  '401',
  '402',
  '413',
  '429',
  '503',
  'routes down',
  'cut stream',
  'error event',
] as const

export type FailureCase = (typeof FAILURES)[number]

const CODES: Partial<Record<FailureCase, ErrorCode>> = {
  '401': 'unauthorized',
  '402': 'insufficient_balance',
  '413': 'request_too_large',
  '429': 'rate_limit_exceeded',
  '503': 'service_unavailable',
  'routes down': 'routes_unavailable',
}

/** A router that fails in one way each time it is asked, and counts how often it is asked. */
export interface FailingRouter {
  /** The origin to give a client for a failure. */
  origin(failure: FailureCase): string
  /** Requests for answers since the last call, which forgets them. */
  taken(failure: FailureCase): number
  close(): void
}

export async function startFailingRouter(): Promise<FailingRouter> {
  const counts = new Map<FailureCase, number>()
  const server = createServer((request, response) => {
    answer(request, response, counts).catch(() => response.destroy())
  })
  const port = await listen(server)
  return {
    origin: (failure) => `http://127.0.0.1:${port}/${FAILURES.indexOf(failure)}`,
    taken: (failure) => {
      const count = counts.get(failure) ?? 0
      counts.delete(failure)
      return count
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  counts: Map<FailureCase, number>,
): Promise<void> {
  const [, index = '', path = ''] = /^\/(\d)(\/[^?]*)/.exec(request.url ?? '') ?? []
  const failure = FAILURES[Number(index)]
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  const api = /^\/v1\/(responses|messages|chat)/.exec(path)?.[1]
  const asked = request.method === 'POST' && !path.endsWith('count_tokens')
  if (failure === undefined || api === undefined || !asked) {
    response.writeHead(404).end()
    return
  }
  counts.set(failure, (counts.get(failure) ?? 0) + 1)
  const code = CODES[failure]
  if (code === undefined) return sendBroken(response, api, failure === 'error event')
  const error = new ApiError(
    code,
    'It failed.',
    code === 'service_unavailable' ? { retryAfter: 2 } : {},
  )
  const reply = errorReply(error, errorFormatAt(path))
  response.writeHead(reply.status, Object.fromEntries(reply.headers)).end(await reply.text())
}

/** Some text, and then the router's own last event, or nothing. */
function sendBroken(response: ServerResponse, api: string, withEvent: boolean): void {
  const format = API_FORMATS[api]?.format
  const writer = format?.chunkWriter(OPTIONS)
  if (format === undefined || writer === undefined) return void response.destroy()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const nothing = { reasoning: undefined, refusal: undefined, toolCalls: [], logprobs: null }
  response.write(writer.open() + writer.delta({ content: 'half', ...nothing }))
  const error = new ApiError('bad_gateway', 'The provider broke off its answer.')
  const last = format.lastEvents(OPTIONS).fail(writer.tail, error)
  if (withEvent) response.end(last)
  else setTimeout(() => response.destroy(), 100)
}
