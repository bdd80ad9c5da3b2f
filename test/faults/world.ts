import { z } from 'zod'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { startFaultProvider, type FaultProvider, type Script } from '../support/fault-provider.ts'
import { freePort } from '../support/free-port.ts'
import { startPinnedFront } from '../support/pinned-front.ts'
import { startStack, until, type Stack } from '../support/stack.ts'
import { healthy } from './answers.ts'

/** The real stack in front of a scripted provider, with clocks so short that every fault is over in seconds. */
export interface World {
  readonly stack: RunningStack
  readonly provider: FaultProvider
  readonly admin: AdminApi
  /** A customer with 10 EUR and a key. */
  newCustomer(more?: Record<string, unknown>): Promise<Customer>
  close(): Promise<void>
}

/** A world whose stack runs as `npm start` runs it. */
export interface StackWorld extends World {
  readonly stack: Stack
}

/** What the trials need of a stack, however it was started. */
export interface RunningStack {
  readonly local: Pick<Stack['local'], 'base_url' | 'admin_token'> & {
    readonly pids: { readonly worker: number }
  }
  readonly fetch: Stack['fetch']
}

export interface Customer {
  readonly id: string
  readonly key: string
}

/** A route of the world. Those of one model are tried in the order given. */
export interface WorldRoute {
  readonly model: string
  /** Absent: it answers soundly, as another provider. */
  readonly script?: Script
  /** The provider that is asked: the scripted one (`alpha`), the healthy one (`beta`), or a closed port (`closed`). */
  readonly at: 'alpha' | 'beta' | 'closed'
  /** Further members of the route. */
  readonly more?: object
}

/** Milliseconds. Every one of them must be far above the time that the machine itself needs. */
export const TIMEOUTS = {
  // No trial is about a connection that is made late.
  connect_ms: 20_000,
  headers_ms: 2_000,
  first_delta_ms: 2_000,
  idle_ms: 2_000,
  stream_headers_after_ms: 6_000,
  keep_alive_ms: 250,
  stream_open_ms: 12_000,
  stream_ms: 6_000,
  sync_attempt_ms: 3_000,
}

/** EUR per million tokens; the other provider costs more, so that a bill shows who served. */
export const PRICES = {
  alpha: { input_per_mtok: 1, output_per_mtok: 2 },
  beta: { input_per_mtok: 3, output_per_mtok: 5 },
  closed: { input_per_mtok: 1, output_per_mtok: 2 },
}

const OPENING_EUR = '10.00'

export interface WorldOptions {
  /** Undefined takes the router's own default. */
  readonly timeouts?: { readonly [Name in keyof typeof TIMEOUTS]?: number | undefined }
  readonly service?: object
  readonly plans?: object
  readonly env?: Readonly<Record<string, string>>
  readonly stateDir?: string
  /**
   * Whether the scripted provider is attested, and reached through the daemon's pinned egress; providers without attestation
   * are then called by the worker itself, as on a host for Workers. Absent: the daemon carries all calls, and no provider is
   * attested.
   */
  readonly pinned?: boolean
  /** Whether whole answers declare their length, so that small ones come to the worker as messages. */
  readonly declared?: boolean
}

export async function openWorld(
  routes: readonly WorldRoute[],
  options: WorldOptions = {},
): Promise<StackWorld> {
  const scripts = new Map(routes.map(({ model, at, script }) => [`${at} ${model}`, script]))
  const provider = await startFaultProvider(
    ({ provider: at, model }) => scripts.get(`${at} ${model}`) ?? healthy,
    { declares: options.declared === true },
  )
  const front = options.pinned === true ? await startPinnedFront(provider.port) : undefined
  const reached = front === undefined ? direct(provider.port) : pinnedAt(front)
  const config = worldConfig(routes, provider.port, await freePort(), options, reached)
  const { env, stateDir, pinned } = options
  const stack = await startStack({
    config,
    env: { ...(pinned !== undefined && { PROVIDER_CALLS: 'worker' }), ...env },
    ...(stateDir === undefined ? {} : { stateDir }),
  })
  const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
  if (front !== undefined) await until(() => isProven(admin))
  return {
    stack,
    provider,
    admin,
    newCustomer: (more = {}) => newCustomer(admin, more),
    close: async () => {
      await stack.stop()
      await front?.close()
      await provider.close()
    },
  }
}

export function worldConfig(
  routes: readonly WorldRoute[],
  port: number,
  closed: number,
  { timeouts, service, plans }: WorldOptions,
  alpha = direct(port),
): object {
  return {
    service: {
      name: 'fault-router',
      mode: 'local',
      timeouts: { ...TIMEOUTS, ...timeouts },
      breaker: { errors: 5, window_ms: 60_000, cooldown_ms: 60_000 },
      ...service,
    },
    providers: {
      alpha: alpha('alpha'),
      beta: direct(port)('beta'),
      closed: direct(closed)('closed'),
    },
    routes: routes.map(({ model, at: who, more }) => ({
      model_key: model,
      provider: who,
      upstream_model: model,
      type: 'chat',
      pricing: { currency: 'eur', ...PRICES[who] },
      max_output_tokens: 1_000,
      ...more,
    })),
    ...(plans === undefined ? {} : { plans }),
  }
}

/** A provider of this name in the configuration. */
type Reached = (name: string) => object

function direct(port: number): Reached {
  return (name) => ({
    base_url: `http://127.0.0.1:${port}/${name}`,
    attestation: { adapter: 'none' },
  })
}

function pinnedAt({ port, rootJwk }: { readonly port: number; readonly rootJwk: object }): Reached {
  return (name) => ({
    base_url: `https://127.0.0.1:${port}/${name}`,
    attestation: { adapter: 'envelope', root_key: rootJwk },
  })
}

const providersSchema = z.object({
  data: z.array(z.object({ provider: z.string(), state: z.string() })),
})

async function isProven(admin: AdminApi): Promise<boolean> {
  const { data } = providersSchema.parse(await admin.call('GET', '/admin/providers'))
  return data.some(({ provider, state }) => provider === 'alpha' && state === 'verified')
}

const madeSchema = z.object({ id: z.string() })
const keySchema = z.object({ key: z.string() })

export async function newCustomer(
  admin: AdminApi,
  more: Record<string, unknown>,
): Promise<Customer> {
  const customer = { name: 'trial', billing: 'prepaid', balance_eur: OPENING_EUR, ...more }
  const { id } = madeSchema.parse(await admin.call('POST', '/admin/customers', customer))
  const path = `/admin/customers/${id}/keys`
  return { id, ...keySchema.parse(await admin.call('POST', path, { name: 'trial' })) }
}
