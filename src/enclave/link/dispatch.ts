import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendAnswer, sendError, type LinkAnswer } from './answer.ts'
import { traceError } from '../../protocol/error-trace.ts'
import { LinkError } from '../link-error.ts'
import type { Log } from '../log.ts'
import type { LinkListener } from './server.ts'

/** A request that reached a handler. */
export interface LinkCall {
  readonly request: IncomingMessage
  readonly url: URL
  /** The part of the path after the route's path: empty, or `/` and more. */
  readonly rest: string
}

export interface LinkRoute {
  /** `any` passes the whole exchange: the handler answers by itself. */
  readonly method: 'GET' | 'POST' | 'DELETE' | 'any'
  readonly path: string
  /** True: the route also accepts all paths below its own. */
  readonly below?: boolean
  handle(call: LinkCall, response: ServerResponse): Promise<LinkAnswer | undefined>
}

/**
 * A listener that finds the route of a request and answers it; unexpected errors are logged by their position in the
 * code.
 */
export function createDispatcher(routes: readonly LinkRoute[], log: Log): LinkListener {
  return (request, response) => {
    answer(routes, request, response).catch((error: unknown) => {
      if (!(error instanceof LinkError)) {
        const { pathname } = urlOf(request)
        const path = routeOf(routes, pathname, request.method)?.path ?? ''
        log('link_failed', { path, ...traceError(error) })
      }
      sendError(response, error)
    })
  }
}

const urlOf = ({ url = '/' }: IncomingMessage) => new URL(`https://link${url}`)

/** The route of a path that accepts the method, else the first of that path, which names the allowed method. */
function routeOf(routes: readonly LinkRoute[], pathname: string, method: string | undefined) {
  const here = routes.filter((route) => matches(route, pathname))
  return here.find((route) => route.method === method) ?? here[0]
}

async function answer(
  routes: readonly LinkRoute[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = urlOf(request)
  const route = routeOf(routes, url.pathname, request.method)
  if (route === undefined) throw new LinkError('not_found', 'the link has no such path')
  if (route.method !== 'any' && route.method !== request.method) {
    throw new LinkError('method_not_allowed', `this path takes ${route.method}`)
  }
  const rest = url.pathname.slice(route.path.length)
  const result = await route.handle({ request, url, rest }, response)
  if (result !== undefined) sendAnswer(response, result)
}

function matches({ path, below }: LinkRoute, pathname: string): boolean {
  return pathname === path || (below === true && pathname.startsWith(`${path}/`))
}
