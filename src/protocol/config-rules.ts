import type { z } from 'zod'
import { formatPath, type ConfigProblem } from './config-problem.ts'
import { isMistakenMember } from './constraint-names.ts'
import { OWN_CHAT_MEMBERS } from './forwarded-members.ts'
import { isOwnSecret } from './own-secrets.ts'
import { configSchema, type RouteConfig, type RouterConfig } from './config.ts'
import { priceProblems } from './price-rules.ts'
import { telemetryProblems } from './telemetry-config.ts'
import { webhookProblems } from './webhook-config.ts'

export type ConfigCheck =
  | { readonly ok: true; readonly config: RouterConfig }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

/** Checks a parsed configuration file: its schema first, then the rules that span several members. */
export function checkConfig(json: unknown): ConfigCheck {
  const parsed = configSchema.safeParse(json)
  if (!parsed.success) return { ok: false, problems: parsed.error.issues.map(describeIssue) }
  const problems = RULES.flatMap((rule) => rule(parsed.data))
  return problems.length > 0 ? { ok: false, problems } : { ok: true, config: parsed.data }
}

function describeIssue(issue: z.core.$ZodIssue): ConfigProblem {
  return { path: formatPath(issue.path), reason: issue.message }
}

type Rule = (config: RouterConfig) => readonly ConfigProblem[]

const RULES: readonly Rule[] = [
  namesAreNotReserved,
  providersAndRegionsDiffer,
  baseUrlsAreBare,
  keysAreTheProviders,
  routesNameTheirProvider,
  routesAreUnique,
  modelKeysHaveOneType,
  regionsAreAllOrNothing,
  priceProblems,
  defaultEffortsExist,
  autoSelectorsResolve,
  allowancesNameProviders,
  originsAreOrigins,
  domainsAreNames,
  forwardedMembersAreFree,
  ({ service }) => webhookProblems(service.webhooks, service.mode),
  ({ service }) => telemetryProblems(service.telemetry),
]

const RESERVED_NAME = 'auto'

function namesAreNotReserved({ providers, routes }: RouterConfig): ConfigProblem[] {
  const reason = `"${RESERVED_NAME}" is a reserved name`
  const found: ConfigProblem[] = []
  if (Object.hasOwn(providers, RESERVED_NAME)) {
    found.push({ path: formatPath(['providers', RESERVED_NAME]), reason })
  }
  routes.forEach((route, index) => {
    for (const member of ['model_key', 'region'] as const) {
      if (route[member] === RESERVED_NAME) found.push(atRoute(index, member, reason))
    }
  })
  return found
}

/** Otherwise `<a>/<model_key>` would be ambiguous. */
function providersAndRegionsDiffer({ providers, routes }: RouterConfig): ConfigProblem[] {
  return routes.flatMap((route, index) =>
    route.region !== undefined && Object.hasOwn(providers, route.region)
      ? [atRoute(index, 'region', `"${route.region}" is also the name of a provider`)]
      : [],
  )
}

function baseUrlsAreBare({ providers }: RouterConfig): ConfigProblem[] {
  return Object.entries(providers).flatMap(([name, provider]) => {
    const url = new URL(provider.base_url)
    const bare = !url.username && !url.password && !url.search && !url.hash
    const path = formatPath(['providers', name, 'base_url'])
    return bare ? [] : [{ path, reason: 'must have no user, password, query or fragment' }]
  })
}

/** A variable named by mistake would send the router's own secret to the provider. */
function keysAreTheProviders({ providers }: RouterConfig): ConfigProblem[] {
  return Object.entries(providers).flatMap(([name, { api_key_env: variable }]) => {
    if (variable === undefined || !isOwnSecret(variable)) return []
    const path = formatPath(['providers', name, 'api_key_env'])
    return [{ path, reason: `${variable} is a secret of the router's own, not a provider's key` }]
  })
}

function routesNameTheirProvider({ providers, routes }: RouterConfig): ConfigProblem[] {
  return routes.flatMap((route, index) =>
    Object.hasOwn(providers, route.provider)
      ? []
      : [atRoute(index, 'provider', `no provider is named "${route.provider}"`)],
  )
}

function routesAreUnique({ routes }: RouterConfig): ConfigProblem[] {
  const first = new Map<string, number>()
  return routes.flatMap((route, index) => {
    const triple = [route.region ?? '', route.provider, route.model_key].join('/')
    const earlier = first.get(triple)
    if (earlier === undefined) {
      first.set(triple, index)
      return []
    }
    const reason = `the same region, provider and model_key as routes[${earlier}]`
    return [{ path: formatPath(['routes', index]), reason }]
  })
}

function modelKeysHaveOneType({ routes }: RouterConfig): ConfigProblem[] {
  const types = new Map<string, RouteConfig['type']>()
  return routes.flatMap((route, index) => {
    const type = types.get(route.model_key) ?? route.type
    types.set(route.model_key, type)
    if (type === route.type) return []
    return [atRoute(index, 'type', `another route of "${route.model_key}" has type "${type}"`)]
  })
}

/** Otherwise `<provider>/<model_key>` would name both one route and several. */
function regionsAreAllOrNothing({ routes }: RouterConfig): ConfigProblem[] {
  const regional = new Map<string, boolean>()
  return routes.flatMap((route, index) => {
    const pair = `${route.provider}/${route.model_key}`
    const hasRegion = route.region !== undefined
    const expected = regional.get(pair) ?? hasRegion
    regional.set(pair, expected)
    if (expected === hasRegion) return []
    const other = expected ? 'with' : 'without'
    return [atRoute(index, 'region', `"${pair}" also has a route ${other} a region`)]
  })
}

function defaultEffortsExist({ routes }: RouterConfig): ConfigProblem[] {
  return routes.flatMap(({ reasoning }, index) => {
    if (reasoning === undefined || reasoning.efforts[reasoning.default_effort] !== undefined) {
      return []
    }
    const path = formatPath(['routes', index, 'reasoning', 'default_effort'])
    return [{ path, reason: `"${reasoning.default_effort}" is not among efforts` }]
  })
}

function autoSelectorsResolve({ service, routes }: RouterConfig): ConfigProblem[] {
  return (service.auto ?? []).flatMap((selector, index) => {
    const path = formatPath(['service', 'auto', index])
    const matched = routes.filter((route) => selectorsOf(route).includes(selector))
    if (matched.length === 0) return [{ path, reason: `no route matches "${selector}"` }]
    return matched.some((route) => route.type === 'chat')
      ? []
      : [{ path, reason: `"${selector}" is not a chat model` }]
  })
}

function selectorsOf({ region, provider, model_key: key }: RouteConfig): string[] {
  const selectors = [key, `${provider}/${key}`]
  return region === undefined
    ? selectors
    : [...selectors, `${region}/${key}`, `${region}/${provider}/${key}`]
}

function allowancesNameProviders({ service, providers }: RouterConfig): ConfigProblem[] {
  return (['allow_unattested', 'allow_unpinned_os'] as const).flatMap((member) =>
    service[member].flatMap((name, index) =>
      Object.hasOwn(providers, name)
        ? []
        : [
            {
              path: formatPath(['service', member, index]),
              reason: `no provider is named "${name}"`,
            },
          ],
    ),
  )
}

function originsAreOrigins({ service }: RouterConfig): ConfigProblem[] {
  return service.cors_origins.flatMap((origin, index) =>
    origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)
      ? []
      : [
          {
            path: formatPath(['service', 'cors_origins', index]),
            reason: 'must be "*" or an origin such as "https://app.example"',
          },
        ],
  )
}

/** A DNS name, with other scripts in their encoded form; the last label of a name is never a number. */
const DOMAIN =
  /^(\*\.)?(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i

/** Any other text would lead to certificates that no client accepts, or that no authority issues. */
function domainsAreNames({ service: { tls } }: RouterConfig): ConfigProblem[] {
  return (tls?.domains ?? []).flatMap((domain, index) => {
    const path = formatPath(['service', 'tls', 'domains', index])
    const match = DOMAIN.exec(domain)
    if (match === null) return [{ path, reason: 'must be a domain name such as "router.example"' }]
    if (match[1] === undefined || tls?.acme_directory === undefined) return []
    return [{ path, reason: 'is a wildcard, which no authority certifies by HTTP-01' }]
  })
}

/** Callers must not set members that the router sets itself, nor the salt that separates customers. */
function forwardedMembersAreFree({ routes }: RouterConfig): ConfigProblem[] {
  return routes.flatMap(({ forward, cache_salt_field: salt }, index) =>
    forward.flatMap((member, place) => {
      const path = formatPath(['routes', index, 'forward', place])
      if (isMistakenMember(member)) {
        return [
          {
            path,
            reason: `"${member}" may be meant as "attestation", so requests with it are refused`,
          },
        ]
      }
      if (!OWN_CHAT_MEMBERS.has(member) && member !== salt) return []
      return [{ path, reason: `"${member}" is set by the router itself` }]
    }),
  )
}

function atRoute(index: number, member: keyof RouteConfig, reason: string): ConfigProblem {
  return { path: formatPath(['routes', index, member]), reason }
}
