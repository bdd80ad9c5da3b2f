import type { IncomingMessage, ServerResponse } from 'node:http'
import { refusal } from './answer.ts'
import { traceError } from '../../protocol/error-trace.ts'
import { LinkError } from '../link-error.ts'
import { sendReply, type LinkAnswer, type LinkReply } from '../link-server/reply.ts'
import type { LinkListener } from '../link-server/server.ts'
import type { Log } from '../log.ts'
import { readBody, type BodyReader } from '../read-body.ts'

/** A request that reached a handler. */
export interface LinkCall {
  readonly body: BodyReader
  readonly url: URL
  /** The part of the path after the route's path: empty, or `/` and more. */
  readonly rest: string
}

interface Place {
  readonly path: string
  /** True: the route also accepts all paths below its own. */
  readonly below?: boolean
}

/** A route with one method and a complete answer. */
export interface AnswerRoute extends Place {
  readonly method: 'GET' | 'POST' | 'DELETE'
  handle(call: LinkCall): Promise<LinkAnswer>
}

/** A route for every method, which writes its response itself. */
export interface RelayRoute extends Place {
  readonly method: 'any'
  relay(call: LinkCall, request: IncomingMessage, response: ServerResponse): Promise<void>
}

export type LinkRoute = AnswerRoute | RelayRoute

/** The routes with complete answers. */
export function answered(routes: readonly LinkRoute[]): readonly AnswerRoute[] {
  return routes.filter((route) => route.method !== 'any')
}

/** A call without a connection. */
export interface ForwardedCall {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly body: BodyReader
}

/**
 * A listener that finds the route of a request and answers it. Unexpected errors are logged with their position in the
 * code only.
 */
export function createDispatcher(routes: readonly LinkRoute[], log: Log): LinkListener {
  return (request, response) => {
    const { method = 'GET', url = '/' } = request
    const body: BodyReader = (maxBytes) => readBody(request, maxBytes)
    answer(routes, { method, target: url, body }, async (route, call) => {
      if ('handle' in route) sendReply(response, { status: 200, ...(await route.handle(call)) })
      else await route.relay(call, request, response)
    }).catch((error: unknown) => {
      noteUnexpected(error, { routes, method, target: url, log })
      sendReply(response, refusal(error))
    })
  }
}

/** Answers a call that another thread received. Never rejects. */
export async function answerForwarded(
  routes: readonly AnswerRoute[],
  call: ForwardedCall,
  log: Log,
): Promise<LinkReply> {
  try {
    const own = await answer(routes, call, (route, found) => route.handle(found))
    return { status: 200, ...own }
  } catch (error) {
    noteUnexpected(error, { routes, ...call, log })
    return refusal(error)
  }
}

/**
 * Finds the route of a call and runs it.
 * @throws LinkError `not_found` or `method_not_allowed`
 */
async function answer<Route extends LinkRoute, Result>(
  routes: readonly Route[],
  { method, target, body }: ForwardedCall,
  run: (route: Route, call: LinkCall) => Promise<Result>,
): Promise<Result> {
  const url = urlOf(target)
  const route = routeOf(routes, url.pathname, method)
  if (route === undefined) throw new LinkError('not_found', 'the link has no such path')
  if (route.method !== 'any' && route.method !== method) {
    throw new LinkError('method_not_allowed', `this path takes ${route.method}`)
  }
  return run(route, { body, url, rest: url.pathname.slice(route.path.length) })
}

interface Failed {
  readonly routes: readonly LinkRoute[]
  readonly method: string
  readonly target: string
  readonly log: Log
}

function noteUnexpected(error: unknown, { routes, method, target, log }: Failed): void {
  if (error instanceof LinkError) return
  const path = routeOf(routes, urlOf(target).pathname, method)?.path ?? ''
  log('link_failed', { path, ...traceError(error) })
}

const urlOf = (target: string) => new URL(`https://link${target}`)

/**
 * The route for a path and a method; else the first route for the path, from which the caller learns the allowed
 * method.
 */
function routeOf<Route extends LinkRoute>(
  routes: readonly Route[],
  pathname: string,
  method: string,
): Route | undefined {
  const here = routes.filter((route) => matches(route, pathname))
  return here.find((route) => route.method === method) ?? here[0]
}

function matches({ path, below }: Place, pathname: string): boolean {
  return pathname === path || (below === true && pathname.startsWith(`${path}/`))
}
