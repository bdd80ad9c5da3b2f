import { rmSync } from 'node:fs'
import { z } from 'zod'
import { addLedgerRows } from '../../scripts/bench/ledger-rows.ts'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { TIMEOUTS, type Customer } from '../faults/world.ts'
import { healthy } from '../faults/answers.ts'
import { together } from '../faults/trial.ts'
import { openRequestsOf } from '../support/open-requests.ts'
import { startFaultProvider, type Script } from '../support/fault-provider.ts'
import { startStack, temporaryDirectory, type Stack } from '../support/stack.ts'
import { parentOf, watchProcesses, type ProcessWatch } from './process-watch.ts'

/** The real stack under load: a scripted provider, a healthy one beside it, and the stand-in for sound files. */
export interface LoadWorld {
  readonly stack: Stack
  readonly admin: AdminApi
  readonly customers: readonly Customer[]
  /** Watches worker, daemon, stand-in and supervisor from now on, and what else is named. */
  watch(others?: Readonly<Record<string, number | undefined>>): ProcessWatch
  /** How many requests the router itself counts at the moment. */
  openRequests(): Promise<number>
  /** The lines of its metrics that tell of faults around it. */
  faultsCounted(): Promise<readonly string[]>
  close(): Promise<void>
}

export interface LoadWorldPlan {
  /** By model. Each has a healthy alternative as another region of the same model, unless it is `alone`. */
  readonly scripts: Readonly<Record<string, Script>>
  readonly alone: readonly string[]
  readonly timeouts: Partial<typeof TIMEOUTS>
  readonly customers: number
  /** Models of a provider that another process runs, on a port of this machine. */
  readonly elsewhere?: { readonly models: readonly string[]; readonly port: number }
  /** Old rows in the ledger of the last customer. */
  readonly ledgerRows?: number
  /** Members of the configuration beside service, providers and routes. */
  readonly more?: object
}

export const OPENING_EUR = '10.00'

const CUSTOMERS_AT_A_TIME = 8

export async function openLoadWorld(plan: LoadWorldPlan): Promise<LoadWorld> {
  const provider = await startFaultProvider(
    ({ provider: at, model }) => (at === 'alpha' ? (plan.scripts[model] ?? healthy) : healthy),
    { keepsCalls: false },
  )
  const { stack, customers } = await startWithCustomers(plan, provider.port)
  const admin = new AdminApi(stack.local.base_url, stack.local.admin_token)
  const supervisor = parentOf(stack.local.pids.worker)
  return {
    stack,
    admin,
    customers,
    watch: (others = {}) =>
      watchProcesses(() => ({ ...stack.localNow().pids, supervisor, ...others })),
    openRequests: () => openRequestsOf(stack),
    faultsCounted: async () => (await metricsOf(stack)).match(/^cmr_faults_total\{.*$/gm) ?? [],
    close: async () => {
      await stack.stop()
      rmSync(stack.stateDir, { recursive: true, force: true })
      await provider.close()
    },
  }
}

async function startWithCustomers(
  plan: LoadWorldPlan,
  providerPort: number,
): Promise<Pick<LoadWorld, 'stack' | 'customers'>> {
  const options = { config: config(plan, providerPort), stateDir: temporaryDirectory() }
  const started = await startStack(options)
  const admin = new AdminApi(started.local.base_url, started.local.admin_token)
  const numbers = Array.from({ length: plan.customers }, (_, index) => index)
  const customers = await together(numbers, CUSTOMERS_AT_A_TIME, () => newCustomer(admin))
  const last = customers.at(-1)
  if (plan.ledgerRows === undefined || last === undefined) return { stack: started, customers }
  // No other process may have the file open.
  await started.stop()
  addLedgerRows(options.stateDir, last.id, plan.ledgerRows)
  return { stack: await startStack(options), customers }
}

async function metricsOf(stack: Stack): Promise<string> {
  const headers = { authorization: `Bearer ${stack.local.admin_token}` }
  return (await stack.fetch('/admin/metrics', { headers })).text()
}

const idSchema = z.object({ id: z.string() })
const keySchema = z.object({ key: z.string() })

async function newCustomer(admin: AdminApi): Promise<Customer> {
  const customer = { name: 'load', billing: 'prepaid', balance_eur: OPENING_EUR }
  const { id } = idSchema.parse(await admin.call('POST', '/admin/customers', customer))
  const path = `/admin/customers/${id}/keys`
  return { id, ...keySchema.parse(await admin.call('POST', path, { name: 'load' })) }
}

function config(plan: LoadWorldPlan, port: number): object {
  const { scripts, alone, timeouts, elsewhere = { models: [], port } } = plan
  const attestation = { adapter: 'none' }
  const at = (name: string, on = port) => ({
    base_url: `http://127.0.0.1:${on}/${name}`,
    attestation,
  })
  const route = (model: string, provider: string) => ({
    model_key: model,
    provider,
    upstream_model: model,
    type: 'chat',
    pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 2 },
    max_output_tokens: 1_000,
  })
  return {
    ...plan.more,
    service: { name: 'load-router', mode: 'local', timeouts: { ...TIMEOUTS, ...timeouts } },
    providers: {
      alpha: at('alpha'),
      beta: at('beta'),
      gamma: at('gamma', elsewhere.port),
      standin: { base_url: 'http://standin.localhost/standin/v1', attestation },
    },
    routes: [
      ...Object.keys(scripts).map((model) => route(model, 'alpha')),
      ...Object.keys(scripts)
        .filter((model) => !alone.includes(model))
        .map((model) => route(model, 'beta')),
      ...elsewhere.models.map((model) => route(model, 'gamma')),
      {
        ...route('whisper', 'standin'),
        type: 'transcription',
        pricing: { currency: 'eur', billing_unit: 'audio_minute', unit_amount: 0.006 },
      },
    ],
  }
}
