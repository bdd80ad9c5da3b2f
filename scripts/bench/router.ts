import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SimulatedChipKeys } from '../../src/protocol/boot.ts'
import { openFronts, type Fronts } from '../../src/host/stack/fronts.ts'
import { writeWorkerBundle } from '../../src/host/worker-bundle.ts'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { carriersFor } from '../../src/host/stack/carrier-plan.ts'
import { untilHealthy } from '../../src/host/stack/healthy.ts'
import type { Started } from '../../src/host/stack/process-restarter.ts'
import { makeLinkCertificates } from '../../src/host/stack/link-certificates.ts'
import { Parts } from '../../src/host/stack/parts.ts'
import { readRouterConfig } from '../../src/host/stack/router-config.ts'
import type { StorageSettings } from '../../src/host/stack/settings.ts'
import type { WorkerPorts } from '../../src/host/stack/start-worker.ts'
import { openStateDir } from '../../src/host/stack/state-dir.ts'
import { workerNames } from '../../src/host/stack/worker-name.ts'
import { makeCustomers } from './customers.ts'
import type { Database } from './database.ts'
import { benchConfig, modelName, type ConfigSize } from './router-config.ts'
import { FRONT, LEDGER, type MockAddress, type System } from './system.ts'

const ADMIN_TOKEN = 'admin-token-of-the-benchmark'
const HEALTH_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 3_000
const ANY_PORT = { host: '127.0.0.1', port: 0 }
const ON_LOOPBACK = { http: ANY_PORT, https: ANY_PORT }

/** A router with all features on, started from the same parts as `npm start`. */
export interface RouterStack {
  /**
   * The router as a system that receives requests of `customers` customers in turn, for the provider without
   * attestation or for the pinned one.
   */
  system(name: string, customers: number, pinned: boolean): System
  /** The customers' ids, in the order of their callers. */
  readonly customerIds: readonly string[]
  /** The directory of the Durable Objects' files. */
  readonly storageDir: string
  /** The keys of the router's simulated chip, for a provider on the same machine. */
  readonly chip: SimulatedChipKeys | undefined
  /** Stops the workers, runs `work`, and starts them again. */
  restarted(work: () => void): Promise<void>
  stop(): Promise<void>
}

export interface RouterOptions {
  readonly mock: MockAddress
  readonly directory: string
  readonly customers: number
  readonly size: ConfigSize
  /** Writes the worker's module to a file; the unchanged worker unless given. */
  readonly writeWorker?: (outFile: string) => Promise<void>
  /** The number of workers behind the same sockets, as with `npm run serve`; one unless given. */
  readonly workers?: number
  /** The ledger's storage engine; in the worker's own process unless given. */
  readonly storage?: 'durable-object' | 'sqlite'
  readonly database?: Database
}

/** Starts the enclave process and the workers, and creates the customers through the admin API. */
export async function startRouter(criteria: RouterOptions): Promise<RouterStack> {
  const { directory, database, workers: count = 1 } = criteria
  const fronts = await openFronts({ ...ON_LOOPBACK, workers: count, log: console.error })
  const parts = await makeParts(criteria, fronts)
  const enclave = await parts.enclave()
  const ledger = parts.hasLedger ? await parts.ledger() : undefined
  let workers = await startWorkers(parts, count)
  const port = fronts.httpPort
  const admin = new AdminApi(`http://127.0.0.1:${port}`, ADMIN_TOKEN)
  const made = await makeCustomers(admin, criteria.customers)
  const stopWorkers = () => Promise.all(workers.map(({ child }) => child.stop(STOP_TIMEOUT_MS)))
  return {
    customerIds: made.map(({ id }) => id),
    storageDir: join(directory, 'state', 'storage'),
    chip: parts.daemon?.release?.simulated ?? undefined,
    async restarted(work) {
      await stopWorkers()
      work()
      workers = await startWorkers(parts, workers.length)
    },
    async stop() {
      await stopWorkers()
      await ledger?.child.stop(STOP_TIMEOUT_MS)
      await enclave.child.stop(STOP_TIMEOUT_MS)
      await fronts.close()
    },
    system: (name, customers, pinned) => ({
      name,
      port,
      processes: () => ({
        workerd: workers.map(({ child }) => child.pid),
        daemon: [enclave.child.pid],
        ...(ledger && { [LEDGER]: [ledger.child.pid] }),
        [FRONT]: [process.pid],
        ...database?.processes(),
      }),
      callers: made.slice(0, customers).map(({ caller }) => caller),
      model: (behaviour) => modelName(behaviour, pinned),
      stop: async () => {},
    }),
  }
}

async function makeParts(criteria: RouterOptions, fronts: Fronts): Promise<Parts> {
  const { directory, database, workers = 1 } = criteria
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const configPath = join(directory, 'bench.json')
  writeFileSync(configPath, JSON.stringify(benchConfig(criteria.mock, criteria.size)))
  const bundlePath = join(directory, 'worker.js')
  await (criteria.writeWorker ?? writeWorkerBundle)(bundlePath)
  const storage: StorageSettings = database
    ? { engine: 'postgres' as const, secret: database.url }
    : { engine: criteria.storage ?? 'durable-object' }
  return new Parts({
    settings: { storage },
    mode: 'local',
    platform: 'simulated',
    ownUrl: `http://127.0.0.1:${fronts.httpPort}`,
    fronts,
    workers,
    carriers: carriersFor(workers),
    probe: workers > 1,
    state: openStateDir(join(directory, 'state')),
    config: readRouterConfig(configPath),
    adminToken: ADMIN_TOKEN,
    link: await makeLinkCertificates(Date.now()),
    bundlePath,
    onDaemonMessage: () => {},
  })
}

/** Starts every worker and waits until it answers, on its probe port if the public ports are shared. */
async function startWorkers(parts: Parts, count: number): Promise<readonly Started<WorkerPorts>[]> {
  const workers = await Promise.all(workerNames(count).map((name) => parts.worker(name)))
  for (const { ready } of workers) {
    await untilHealthy(`http://127.0.0.1:${ready.probe ?? ready.http}`, HEALTH_TIMEOUT_MS)
  }
  return workers
}
