import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { SimulatedChipKeys } from '../../src/protocol/boot.ts'
import { buildWorker } from '../build.ts'
import { AdminApi } from '../stack/admin-api.ts'
import { untilHealthy } from '../stack/healthy.ts'
import { makeLinkCertificates } from '../stack/link-certificates.ts'
import { Parts } from '../stack/parts.ts'
import { readRouterConfig } from '../stack/router-config.ts'
import { openStateDir } from '../stack/state-dir.ts'
import { benchConfig, modelName, type ConfigSize } from './router-config.ts'
import { chatCaller, type Caller, type MockAddress, type System } from './system.ts'

const ADMIN_TOKEN = 'admin-token-of-the-benchmark'
const HEALTHY_WITHIN_MS = 30_000
const STOP_WITHIN_MS = 3_000

/** A router with everything on, started from the same parts as by `npm start`. */
export interface RouterStack {
  /** Requests of that many customers in turn, direct or through the daemon's pinned egress. */
  system(name: string, customers: number, pinned: boolean): System
  /** The customers' ids, in the order of their callers. */
  readonly customerIds: readonly string[]
  /** Where the Durable Objects have their files. */
  readonly storageDir: string
  /** What the daemon's simulated chip is made of, for a provider on the same machine. */
  readonly chip: SimulatedChipKeys | undefined
  /** Does some work while the worker is away. */
  restarted(work: () => void): Promise<void>
  stop(): Promise<void>
}

export interface RouterWish {
  readonly mock: MockAddress
  readonly directory: string
  readonly customers: number
  readonly size: ConfigSize
}

/** Starts daemon and worker, and makes the customers through the admin interface. */
export async function startRouter(wish: RouterWish): Promise<RouterStack> {
  const { directory } = wish
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const configPath = join(directory, 'bench.json')
  writeFileSync(configPath, JSON.stringify(benchConfig(wish.mock, wish.size)))
  const state = openStateDir(join(directory, 'state'))
  const bundlePath = join(directory, 'worker.js')
  await buildWorker(bundlePath)
  const parts = new Parts({
    settings: { port: 0, tlsPort: 0, storage: { engine: 'durable-object' } },
    platform: 'simulated',
    state,
    config: readRouterConfig(configPath),
    adminToken: ADMIN_TOKEN,
    link: await makeLinkCertificates(Date.now()),
    bundlePath,
    daemonSaid: () => {},
  })
  const enclave = await parts.enclave()
  let worker = await parts.worker()
  const base = `http://127.0.0.1:${parts.ports.http}`
  await untilHealthy(base, HEALTHY_WITHIN_MS)
  const made = await makeCustomers(new AdminApi(base, ADMIN_TOKEN), wish.customers)
  const stop = async () => {
    await worker.child.stop(STOP_WITHIN_MS)
    await enclave.child.stop(STOP_WITHIN_MS)
  }
  return {
    customerIds: made.map(({ id }) => id),
    storageDir: join(directory, 'state', 'storage'),
    chip: parts.daemon?.release?.simulated ?? undefined,
    async restarted(work) {
      await worker.child.stop(STOP_WITHIN_MS)
      work()
      worker = await parts.worker()
      await untilHealthy(base, HEALTHY_WITHIN_MS)
    },
    stop,
    system: (name, customers, pinned) => ({
      name,
      port: parts.ports.http,
      pids: [worker.child.pid, enclave.child.pid],
      callers: made.slice(0, customers).map(({ caller }) => caller),
      model: (behaviour) => modelName(behaviour, pinned),
      stop: async () => {},
    }),
  }
}

interface MadeCustomer {
  readonly id: string
  readonly caller: Caller
}

async function makeCustomers(admin: AdminApi, count: number): Promise<MadeCustomer[]> {
  const made: MadeCustomer[] = []
  while (made.length < count) {
    const batch = Array.from({ length: Math.min(16, count - made.length) }, () =>
      makeCustomer(admin),
    )
    made.push(...(await Promise.all(batch)))
  }
  return made
}

async function makeCustomer(admin: AdminApi): Promise<MadeCustomer> {
  const customer = await admin.call('POST', '/admin/customers', {
    name: 'bench',
    billing: 'postpaid',
  })
  const { id } = z.object({ id: z.string() }).parse(customer)
  const answer = await admin.call('POST', `/admin/customers/${id}/keys`, { name: 'bench' })
  const { key } = z.object({ key: z.string() }).parse(answer)
  return { id, caller: chatCaller({ authorization: `Bearer ${key}` }) }
}
