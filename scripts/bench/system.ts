/** Process ids by kind, such as `workerd` and `daemon`. */
export type Processes = Readonly<Record<string, readonly number[]>>

/** The kind of PostgreSQL's processes. */
export const DATABASE = 'postgresql'

/** The group of a router's fronts: threads of the supervisor, here of the benchmark's own process. */
export const FRONT = 'front'

/** A system under test, running. */
export interface System {
  readonly name: string
  readonly port: number
  /** Its current processes, without the mock provider and the load generator. */
  processes(): Processes
  /** Path and headers of the requests, which are sent in turn. */
  readonly callers: readonly Caller[]
  /** The model name for a behaviour of the mock. */
  model(behaviour: string): string
  /** The body of a request; a chat request by default. */
  readonly body?: (model: string, body: ChatBody) => string
  stop(): Promise<void>
}

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

/** A whole HTTP/1.1 request as latin1 text. */
export function requestText({ path, headers }: Caller, body: string): string {
  const lines = Object.entries({
    host: '127.0.0.1',
    'content-type': 'application/json',
    ...headers,
    'content-length': String(Buffer.byteLength(body)),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${Buffer.from(body).toString('latin1')}`
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
