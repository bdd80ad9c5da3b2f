import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { hopByHop } from '../../protocol/hop-by-hop.ts'
import { wantsReceipt } from '../../protocol/wants-receipt.ts'
import type { Client } from '../client.ts'
import { AttestationRefused, ClientError } from '../errors.ts'
import type { ReceiptOutcome } from '../receipt-outcome.ts'
import { crossOriginFault } from './loopback-rules.ts'
import { VerificationLog, type VerificationState } from './verification-log.ts'
import { verificationPage } from './verification-page.ts'

/** The facts of one request that may be printed: nothing of its content. */
export interface ProxiedRequest {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly milliseconds: number
  /** Undefined where the answer cannot have a receipt. */
  readonly receipt: ReceiptOutcome | 'not_asked_for' | undefined
}

export interface ProxyPlan {
  readonly client: Client
  /** The router's address, to which paths are appended. */
  readonly router: URL
  /** Replaces the API key that a tool sends. */
  readonly apiKey?: string | undefined
  readonly now: () => number
  readonly onAnswered: (request: ProxiedRequest) => void
}

/** Headers that concern only this machine, or that the transport sets itself. */
const LOCAL_HEADERS = new Set([
  'host',
  'content-length',
  'expect',
  'origin',
  'referer',
  'cookie',
  'accept-encoding',
])

/** Slightly more than the router accepts. */
const MAX_BODY_BYTES = 64 * 1024 * 1024

export interface LoopbackProxy {
  readonly server: Server
  /** The content of `/verification`. */
  state(): VerificationState
}

/**
 * Creates a server for this machine's own programs, which should listen on loopback. It passes every path through a
 * client that verifies the router first, and reports the proof and the receipts at `/verification`.
 */
export function createProxy(plan: ProxyPlan): LoopbackProxy {
  const log = new VerificationLog(plan)
  const server = createServer((request, response) => {
    handle(plan, log, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy()
      else refuse(response, failureOf(error))
    })
  })
  // The router, not this proxy, limits how long a model may take.
  server.requestTimeout = 0
  return { server, state: () => log.state() }
}

async function handle(
  plan: ProxyPlan,
  log: VerificationLog,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { headers, url = '/' } = request
  const fault = crossOriginFault({
    host: headers.host,
    origin: headers.origin,
    fetchSite: one(headers['sec-fetch-site']),
  })
  if (fault !== undefined) {
    refuse(response, { status: 403, code: 'not_from_this_machine', message: `refused: ${fault}` })
    return
  }
  if (headers.origin !== undefined) allowOrigin(response, headers.origin)
  if (request.method === 'OPTIONS') response.writeHead(204).end()
  else if (url.split('?')[0] === '/verification') showVerification(log, request, response)
  else await forward(plan, log, request, response)
}

async function forward(
  { apiKey, client, now, router, onAnswered }: ProxyPlan,
  log: VerificationLog,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const began = now()
  const { method = 'GET', url = '/' } = request
  const path = url.split('?')[0] ?? url
  const hungUp = new AbortController()
  response.once('close', () => hungUp.abort())
  const body = await readBody(request)
  if (body === undefined) {
    refuse(response, { status: 413, code: 'body_too_large', message: 'more than 64 MiB' })
    return
  }
  const refused = (failure: Failure) => {
    refuse(response, failure)
    const { status } = failure
    onAnswered({ method, path, status, milliseconds: now() - began, receipt: undefined })
  }
  const address = router.pathname.replace(/\/$/, '') + url
  // A request line may also name a host. That is a fault of the tool, and says nothing about the router.
  const target = URL.parse(address, router)
  if (target?.origin !== router.origin) {
    const message = 'the request names another host than the router'
    return refused({ status: 400, code: 'foreign_address', message })
  }
  const headers = outgoingHeaders(request, apiKey)
  const outgoing = { method, headers, ...(body.length === 0 ? {} : { body }) }
  if (!isRequest(target, outgoing)) {
    const message = 'a request of this method, URL and body cannot be passed on'
    return refused({ status: 400, code: 'invalid_request', message })
  }
  let answer: Response
  try {
    answer = await client.fetch(target, { ...outgoing, signal: hungUp.signal })
    log.proven()
  } catch (error) {
    log.failed(error)
    return refused(failureOf(error))
  }
  const receipt = client.receipts.of(answer)
  response.writeHead(answer.status, answerHeaders(answer))
  response.flushHeaders()
  if (answer.body === null) response.end()
  // A truncated answer stays truncated, so that it does not look complete.
  else await pipeline(Readable.from(answer.body), response).catch(() => undefined)
  const outcome = await receipt
  if (outcome !== undefined) log.add(outcome)
  const declined = answer.ok && !wantsReceipt(headers)
  const verdict = outcome ?? (declined ? 'not_asked_for' : undefined)
  onAnswered({ method, path, status: answer.status, milliseconds: now() - began, receipt: verdict })
}

/**
 * Whether the platform allows such a request: it refuses some methods, a GET with a body, and a user name or password
 * in the URL.
 */
function isRequest(target: URL, init: RequestInit): boolean {
  try {
    return new Request(target, init) instanceof Request
  } catch {
    return false
  }
}

function showVerification(
  log: VerificationLog,
  { headers }: IncomingMessage,
  response: ServerResponse,
): void {
  const state = log.state()
  const wantsHtml = headers.accept?.includes('text/html') === true
  response.writeHead(200, {
    'cache-control': 'no-store',
    'content-type': wantsHtml ? 'text/html; charset=utf-8' : 'application/json',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    'x-content-type-options': 'nosniff',
  })
  response.end(wantsHtml ? verificationPage(state) : `${JSON.stringify(state, null, 2)}\n`)
}

async function readBody(request: IncomingMessage): Promise<Buffer<ArrayBuffer> | undefined> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of request) {
    const bytes: Buffer = part
    size += bytes.length
    if (size > MAX_BODY_BYTES) return undefined
    parts.push(bytes)
  }
  return Buffer.concat(parts)
}

function outgoingHeaders({ headers }: IncomingMessage, apiKey: string | undefined): Headers {
  const ofConnection = hopByHop(headers.connection)
  const outgoing = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || ofConnection(name) || LOCAL_HEADERS.has(name)) continue
    if (name.startsWith('sec-fetch-')) continue
    for (const each of [value].flat()) outgoing.append(name, each)
  }
  if (apiKey === undefined) return outgoing
  outgoing.delete('x-api-key')
  outgoing.set('authorization', `Bearer ${apiKey}`)
  return outgoing
}

function answerHeaders({ headers }: Response): Record<string, string> {
  const ofConnection = hopByHop(headers.get('connection'))
  const local = (name: string) =>
    ofConnection(name) || LOCAL_HEADERS.has(name) || name.startsWith('access-control-')
  const kept = [...headers].filter(([name]) => name === 'content-length' || !local(name))
  return Object.fromEntries(kept)
}

function allowOrigin(response: ServerResponse, origin: string): void {
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-allow-headers', '*, authorization')
  response.setHeader('access-control-allow-methods', '*')
  response.setHeader('access-control-expose-headers', '*')
  response.setHeader('vary', 'origin')
}

interface Failure {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly failed?: readonly string[]
}

function failureOf(error: unknown): Failure {
  if (error instanceof AttestationRefused) {
    const { failed, message } = error
    return { status: 503, code: 'router_not_proven', message, failed }
  }
  if (error instanceof ClientError) return { status: 503, code: error.code, message: error.message }
  return { status: 502, code: 'router_unreachable', message: 'the router cannot be reached' }
}

/** Answers with an error in the format of OpenAI SDKs, with a header against automatic retries. */
function refuse(response: ServerResponse, { status, ...error }: Failure): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-should-retry': 'false' })
  response.end(JSON.stringify({ error: { ...error, type: 'proxy_error', param: null } }))
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
