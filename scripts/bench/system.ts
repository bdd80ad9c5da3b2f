import type { Load } from './load-plan.ts'

/** Process ids by kind, such as `workerd` and `daemon`. */
export type Processes = Readonly<Record<string, readonly number[]>>

/** The group of PostgreSQL's processes. */
export const DATABASE = 'postgresql'

/** The group of the process that holds the ledger of several workers on one host. */
export const LEDGER = 'ledger'

/** The thread of the ledger process that writes, and also reads the workers' calls and answers them. */
export const WRITER = 'writer thread'

/** The group of a router's fronts: threads of the supervisor, which here is the benchmark's own process. */
export const FRONT = 'front'

/** A system under test, running. */
export interface System {
  readonly name: string
  readonly port: number
  /** The system's current processes, without the mock provider and the load generator. */
  processes(): Processes
  /** CPU time so far by part, us, when the parts are threads; absent when they are processes. */
  cpuTimesUs?(): Readonly<Record<string, number>>
  /** The source of load, if its clients do not send HTTP requests; the HTTP load generator unless given. */
  readonly load?: Load
  /** Path and headers of the requests, which are sent in turn. */
  readonly callers: readonly Caller[]
  /** The model name that requests to this system use for a behaviour of the mock. */
  model(behaviour: string): string
  /** The requests of a window; a chat request of each caller by default. */
  readonly requests?: MakeRequests
  stop(): Promise<void>
}

/** Makes complete requests, which are sent in turn, from a behaviour of the mock and the body of a chat. */
export type MakeRequests = (
  callers: readonly Caller[],
  behaviour: string,
  body: ChatBody,
) => readonly string[] | Promise<readonly string[]>

export interface Caller {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** Where the mock provider listens. */
export interface MockAddress {
  readonly port: number
  readonly tlsPort: number
  readonly rootJwk: Readonly<Record<string, unknown>>
}

/** A system that cannot run here, and why. */
export interface Skipped {
  readonly name: string
  readonly reason: string
}

const CHAT_PATH = '/v1/chat/completions'

export const chatCaller = (headers: Readonly<Record<string, string>> = {}): Caller => ({
  path: CHAT_PATH,
  headers,
})

/** The requests of a system for one window. */
export function requestsOf(
  system: System,
  behaviour: string,
  body: ChatBody,
): readonly string[] | Promise<readonly string[]> {
  const { callers, requests = chatRequests } = system
  return requests(callers, system.model(behaviour), body)
}

const chatRequests: MakeRequests = (callers, model, body) =>
  callers.map((caller) => requestText(caller, chatBody(model, body)))

/** A whole HTTP/1.1 request as latin1 text. */
export function requestText({ path, headers }: Caller, body: string | Buffer): string {
  const bytes = Buffer.from(body)
  const lines = Object.entries({
    host: '127.0.0.1',
    'content-type': 'application/json',
    ...headers,
    'content-length': String(bytes.length),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${bytes.toString('latin1')}`
}

export interface ChatBody {
  readonly stream: boolean
  readonly content?: string | undefined
  readonly tools?: readonly unknown[] | undefined
}

/** The body of a chat request, of about a hundred bytes by default. */
export function chatBody(model: string, { stream, content, tools = [] }: ChatBody): string {
  const messages = [{ role: 'user', content: content ?? 'Say something short.' }]
  return JSON.stringify({
    model,
    ...(stream ? { stream } : {}),
    ...(tools.length > 0 ? { tools } : {}),
    messages,
  })
}
