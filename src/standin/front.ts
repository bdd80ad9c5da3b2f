import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http'
import { hopByHop } from '../protocol/hop-by-hop.ts'
import { recorded, type ExchangeLog } from './exchange-log.ts'
import { play, scriptedAnswerSchema, type AnswerSink, type Script } from './script.ts'

/**
 * The stand-in's HTTP server. It records the exact bytes of both directions, and answers a request from the script or
 * passes it on to the mock behind it. The path prefix in `/<provider>/v1/...` lets one process represent several
 * providers.
 *
 * - `GET /__standin/exchanges`: `{"exchanges": ExchangeEntry[]}`; `DELETE` clears the exchanges and the script.
 * - `POST /__standin/script`: adds one `ScriptedAnswer`.
 */
export function createFront(mockUrl: string, log: ExchangeLog, script: Script): Server {
  return createServer((request, response) => {
    const url = request.url ?? '/'
    const serve = url.startsWith('/__standin/')
      ? control(url, request, response, log, script)
      : exchange(url, request, response, { mockUrl, log, script })
    serve.catch(() => response.destroy())
  })
}

interface Parts {
  readonly mockUrl: string
  readonly log: ExchangeLog
  readonly script: Script
}

const PROVIDER_PATH = /^\/(?<provider>[A-Za-z0-9._-]+)(?<path>\/v1\/.*)$/
const MAX_FOR_MOCK = 10 * 1024 * 1024

async function exchange(
  url: string,
  request: IncomingMessage,
  response: ServerResponse,
  { mockUrl, log, script }: Parts,
): Promise<void> {
  const { provider = '', path = url } = PROVIDER_PATH.exec(url)?.groups ?? {}
  const body = await bodyOf(request)
  const sink = recordingSink(response)
  response.once('close', () =>
    log.add({
      provider,
      method: request.method ?? '',
      path,
      request: { headers: request.headers, ...recorded(body) },
      response: {
        status: response.statusCode,
        headers: response.getHeaders(),
        complete: response.writableFinished,
        ...recorded(sink.sent),
      },
    }),
  )
  const scripted = script.take(provider)
  if (scripted !== undefined) return play(scripted, sink)
  passOn(new URL(path, mockUrl), request, withinMock(Buffer.concat(body)), sink)
}

/**
 * The mock accepts 10 MiB at most. Removes the middle of a larger upload, which in every real form is file content; the
 * log keeps the whole body.
 */
function withinMock(body: Buffer): Buffer {
  if (body.length <= MAX_FOR_MOCK) return body
  return Buffer.concat([body.subarray(0, MAX_FOR_MOCK / 2), body.subarray(-MAX_FOR_MOCK / 2)])
}

function passOn(target: URL, request: IncomingMessage, body: Buffer, sink: AnswerSink): void {
  const headers = { ...endToEnd(request.headers), 'content-length': body.length }
  const call = httpRequest(target, { method: request.method ?? 'GET', headers }, (answer) => {
    sink.head(answer.statusCode ?? 502, endToEnd(answer.headers))
    answer.on('data', (chunk: Buffer) => sink.write(chunk))
    answer.on('end', () => sink.end())
    answer.on('error', () => sink.reset())
  })
  call.on('error', () => sink.reset())
  call.end(body)
}

function recordingSink(response: ServerResponse): AnswerSink & { readonly sent: Buffer[] } {
  const sent: Buffer[] = []
  return {
    sent,
    head: (status, headers) => {
      response.statusCode = status
      response.setHeaders(new Map(Object.entries(headers)))
      response.flushHeaders()
    },
    write: (bytes) => {
      sent.push(bytes)
      response.write(bytes)
    },
    end: () => void response.end(),
    reset: () => void response.destroy(),
  }
}

async function control(
  url: string,
  request: IncomingMessage,
  response: ServerResponse,
  log: ExchangeLog,
  script: Script,
): Promise<void> {
  const endpoints: Record<string, (body: string) => unknown> = {
    'GET /__standin/exchanges': () => ({ exchanges: log.list() }),
    'DELETE /__standin/exchanges': () => {
      log.clear()
      script.clear()
      return {}
    },
    'POST /__standin/script': (body) => {
      script.add(scriptedAnswerSchema.parse(JSON.parse(body)))
      return {}
    },
  }
  const endpoint = endpoints[`${request.method} ${url}`]
  const answer = endpoint?.(Buffer.concat(await bodyOf(request)).toString())
  response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer ?? {}))
}

async function bodyOf(request: IncomingMessage): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return chunks
}

function endToEnd(headers: OutgoingHttpHeaders): Record<string, string> {
  const ofConnection = hopByHop(undefined)
  const kept = Object.entries(headers).filter(
    ([name, value]) => !ofConnection(name) && value !== undefined,
  )
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]))
}
