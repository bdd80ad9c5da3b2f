import * as z from 'zod'
import { formatPath, type ConfigProblem } from './config-problem.ts'
import { isLoopbackHost } from './loopback.ts'

/** Webhooks of the configuration file (docs/webhooks.md). */

/** The types of events. */
export const WEBHOOK_EVENTS = [
  'balance.low',
  'key.limit_near',
  'key.limit_reached',
  'provider.proof_lost',
  'provider.proof_regained',
  'route.resting',
  'bundle.expiring',
  'ledger.failing',
  'signing.failing',
] as const

export type WebhookEventType = (typeof WEBHOOK_EVENTS)[number]

const endpointSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  /** The environment variable that holds its signing secret, `whsec_` and base64. */
  secret_env: z.string().min(1),
  /** The events that are sent to it; if omitted, all. */
  events: z.array(z.enum(WEBHOOK_EVENTS)).min(1).optional(),
})

export const webhooksSchema = z.strictObject({
  /** The only host names to which webhooks are sent. */
  allowed_hosts: z.array(z.string().min(1)).min(1),
  /** A prepaid balance below this is reported. */
  balance_below_eur: z.number().positive().max(1_000_000).default(5),
  /** How long before its expiry the trust bundle is reported. */
  bundle_expires_within_hours: z.int().min(1).max(8760).default(72),
  endpoints: z.record(z.string().regex(/^[A-Za-z0-9._-]+$/), endpointSchema),
})

export type WebhooksConfig = z.output<typeof webhooksSchema>

/** The environment variables of the endpoints' secrets. */
export function webhookSecretNames(webhooks: WebhooksConfig | undefined): string[] {
  return Object.values(webhooks?.endpoints ?? {}).map(({ secret_env: name }) => name)
}

/** Problems with endpoints that are not allowed, or that use plain HTTP. */
export function webhookProblems(
  webhooks: WebhooksConfig | undefined,
  mode: 'production' | 'local',
): ConfigProblem[] {
  return Object.entries(webhooks?.endpoints ?? {}).flatMap(([name, { url }]) => {
    const { protocol, hostname, username, password, hash } = new URL(url)
    const path = formatPath(['service', 'webhooks', 'endpoints', name, 'url'])
    const plainAllowed = mode === 'local' && isLoopbackHost(hostname)
    const reasons = [
      ...(webhooks?.allowed_hosts.includes(hostname)
        ? []
        : ['names a host that is not in allowed_hosts']),
      ...(protocol === 'https:' || plainAllowed ? [] : ['must be https']),
      ...(username || password || hash ? ['must have no user, password or fragment'] : []),
    ]
    return reasons.map((reason) => ({ path, reason }))
  })
}
