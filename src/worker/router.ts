import { Router, type IRequest } from 'itty-router'
import type { Context, Handler } from './context.ts'
import type { EncryptedExchange } from './ehbp/encrypted-exchange.ts'
import { ENDPOINTS, type Endpoint } from './endpoints.ts'
import { errorFormatAt } from './http/error-format.ts'
import { ApiError } from './http/errors.ts'
import { baseUrlHint } from './http/base-url-hint.ts'
import { errorReply, noContent, withoutBody } from './http/reply.ts'
import { toApiError } from './http/to-api-error.ts'

/** The callbacks of one request. Its context is opened only after an endpoint has matched. */
export interface Scope {
  readonly openContext: () => Promise<Context>
  readonly matched: (endpoint: Endpoint) => void
  /** Records a failure; returns the error with which to answer. */
  readonly failed: (error: unknown) => Promise<unknown>
  /**
   * The encrypted exchange that the request begins; undefined where it is not encrypted.
   * @throws ApiError `invalid_encryption` where the endpoint takes no encrypted bodies
   */
  readonly encrypted: (endpoint: Endpoint) => EncryptedExchange | undefined
  /** Turns a handler's answer into the one that is sent to the client. */
  readonly deliver: (answer: Response) => Response
  /** Reads and discards the rest of the body of a refused request. */
  readonly drain: (body: Request['body']) => Promise<void>
}

/** `params` are the path parameters as the client wrote them. */
type Route = (
  request: Request,
  scope: Scope,
  params: Readonly<Record<string, string | undefined>>,
) => Promise<Response>

const SERVED = ENDPOINTS.filter(({ path }) => path.startsWith('/v1/'))

const SERVED_NAMES = SERVED.map(
  ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)[+?]?/g, '{$1}')}`,
).join(', ')

const REGISTRARS = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const

/** Builds the router from the table of endpoints. */
export function createRouter() {
  const router = Router<IRequest & Request, [Scope], Response>()
  const exact = new Map<string, Route>()
  for (const endpoint of ENDPOINTS) {
    const route = routeOf(endpoint)
    if (!endpoint.path.includes(':')) exact.set(`${endpoint.method} ${endpoint.path}`, route)
    router[REGISTRARS[endpoint.method]](endpoint.path, matched(route))
    if (endpoint.method === 'GET') router.head(endpoint.path, matched(headOf(endpoint)))
    router.options(endpoint.path, matched(preflightOf(endpoint)))
  }
  for (const [path, allowed] of allowedMethods()) {
    router.all(path, () => wrongMethod(path, allowed))
  }
  router.all('*', ({ url }) => unknownPath(new URL(url).pathname))
  return {
    /**
     * Looks up the path literally first: most requests name a path without parameters, which avoids testing each pattern.
     */
    fetch: (request: Request, scope: Scope): Promise<Response> => {
      if (!hasGoodUrl(request)) return Promise.resolve(badUrl())
      const route = exact.get(`${request.method} ${pathOf(request.url)}`)
      return route === undefined ? router.fetch(request, scope) : route(request, scope, {})
    },
  }
}

/** The path of a request's URL, as the client wrote it. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', start)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}

function matched(route: Route) {
  return (request: IRequest & Request, scope: Scope) => route(request, scope, request.params)
}

/** @param asMethod turns the answer into that of the method; if it fails, so does the request */
function routeOf(
  endpoint: Endpoint,
  asMethod: (answer: Response) => Response | Promise<Response> = (answer) => answer,
): Route {
  return async (request, scope, encoded) => {
    scope.matched(endpoint)
    let exchange: EncryptedExchange | undefined
    const seal = (answer: Response) => exchange?.seal(answer) ?? answer
    try {
      const params = decodeParams(encoded)
      exchange = scope.encrypted(endpoint)
      const context = await scope.openContext()
      const plain = exchange === undefined ? request : await exchange.open(request, context)
      const answer = await endpoint.handler(plain, context, params)
      return await seal(await asMethod(scope.deliver(answer)))
    } catch (error) {
      const answer = toApiError(await scope.failed(error))
      await scope.drain(request.body)
      const { unavailable } = endpoint
      const refusal =
        unavailable && answer.status >= 500 ? unavailable() : errorReply(answer, endpoint.errors)
      return seal(await asMethod(refusal))
    }
  }
}

/** The answer to GET without its body (RFC 9110 section 9.3.2). */
function headOf(endpoint: Endpoint): Route {
  return routeOf(endpoint, withoutBody)
}

/** The headers that answer a preflight depend on the endpoint's audience and are added to every answer. */
function preflightOf(endpoint: Endpoint): Route {
  return async (_request, scope) => {
    scope.matched(endpoint)
    return noContent()
  }
}

function decodeParams(params: Parameters<Route>[2]): Parameters<Handler>[2] {
  const decoded: Record<string, string> = {}
  for (const [name, value] of Object.entries(params)) decoded[name] = decode(value ?? '')
  return decoded
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new ApiError('invalid_parameter', 'The path holds a malformed percent escape.')
  }
}

function allowedMethods(): ReadonlyMap<string, string> {
  const methods = Map.groupBy(ENDPOINTS, ({ path }) => path)
  return new Map([...methods].map(([path, rows]) => [path, rows.flatMap(methodsOf).join(', ')]))
}

function methodsOf({ method }: Endpoint): readonly string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

function wrongMethod(path: string, allow: string): Response {
  const message = `This path takes ${allow}.`
  const error = new ApiError('method_not_allowed', message, { headers: { allow } })
  return errorReply(error, errorFormatAt(path))
}

/**
 * Matches an invalid `Host` header: one with characters that would move part of it into the path, or an empty one, which
 * would turn part of the path into the host.
 */
const NO_HOST = /^$|[/\\?#@]/

/** workerd concatenates the `Host` header and the request target into the URL and checks neither. */
function hasGoodUrl({ url, headers }: Request): boolean {
  const host = headers.get('host')
  return URL.canParse(url) && (host === null || !NO_HOST.test(host))
}

function badUrl(): Response {
  const message = 'The Host header, or what follows it in the URL of this request, is not valid.'
  return errorReply(new ApiError('invalid_request_error', message))
}

function unknownPath(path: string): Response {
  const hint = baseUrlHint(
    path,
    SERVED.map((endpoint) => endpoint.path),
  )
  if (!path.startsWith('/v1/')) {
    const reason = hint ?? 'The endpoints for models are under /v1.'
    return errorReply(new ApiError('not_found', `There is nothing at this path. ${reason}`))
  }
  const reason = hint ?? `Supported are: ${SERVED_NAMES}.`
  const message = `This endpoint is not supported. ${reason}`
  return errorReply(new ApiError('unsupported_endpoint', message), errorFormatAt(path))
}
