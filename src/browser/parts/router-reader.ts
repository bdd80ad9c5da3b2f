import type { Bytes } from '../../protocol/bytes.ts'
import { readBounded } from '../../protocol/read-bounded.ts'

/** Limits the size of an answer; every genuine document is smaller. */
const MAX_BYTES = 16 * 1024 * 1024
const WITHIN_MS = 60_000

/** The router did not answer, or its answer is unusable. */
export class RouterUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RouterUnavailable'
  }
}

export interface ReadAnswer {
  readonly status: number
  readonly body: Bytes
}

/** Reads documents of one router and no other server: without cookies or redirects, with limits on size and time. */
export interface RouterReader {
  readonly base: URL
  /**
   * @param path such as `/attestation`
   * @throws RouterUnavailable when there is no usable answer
   */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<ReadAnswer>
  /** `get` in the form of `fetch`; accepts only addresses of this router. */
  readonly fetch: typeof fetch
}

/** @throws RouterUnavailable when the text is not a valid address */
export function parseRouterAddress(text: string): URL {
  const typed = text.trim()
  const url = URL.canParse(typed) ? new URL(typed) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw new RouterUnavailable('Give the address of a router, such as https://router.example.')
  }
  url.pathname = url.pathname.replace(/\/(v1\/?)?$/, '')
  return url
}

export function createRouterReader(base: URL): RouterReader {
  const send = async (url: URL, init: RequestInit = {}): Promise<Response> => {
    if (url.origin !== base.origin) {
      throw new RouterUnavailable(`${url.origin} is not the router that you named.`)
    }
    try {
      return await fetch(url, {
        ...init,
        credentials: 'omit',
        cache: 'no-store',
        redirect: 'manual',
        referrerPolicy: 'no-referrer',
        signal: AbortSignal.timeout(WITHIN_MS),
      })
    } catch (cause) {
      const why = cause instanceof Error && cause.name === 'TimeoutError' ? 'in time ' : ''
      const hint = `Is the address right, and is its certificate one that this browser accepts?`
      throw new RouterUnavailable(`No answer ${why}from ${base.origin}. ${hint}`, { cause })
    }
  }
  return {
    base,
    fetch: (input) => send(new URL(input instanceof Request ? input.url : input)),
    get: async (path, headers = {}) => {
      const prefix = base.pathname.replace(/\/$/, '')
      const answer = await send(new URL(prefix + path, base), { headers })
      return { status: answer.status, body: await readWhole(answer) }
    },
  }
}

async function readWhole({ body }: Response): Promise<Bytes> {
  const bytes = await readBounded(body, MAX_BYTES)
  if (bytes !== undefined) return bytes
  throw new RouterUnavailable('The answer is larger than any honest one.')
}
