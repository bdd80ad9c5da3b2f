import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AdminApi } from '../../src/host/stack/admin-api.ts'
import { writeLocalWorkerBundle } from '../../src/host/worker-bundle.ts'
import { untilHealthy } from '../../src/host/stack/healthy.ts'
import { makeLinkCertificates } from '../../src/host/stack/link-certificates.ts'
import { startDaemon } from '../../src/host/stack/start-daemon.ts'
import { startWorker } from '../../src/host/stack/start-worker.ts'
import { compileWorkerdConfig } from '../../src/host/stack/workerd-config.ts'
import { startFaultProvider } from '../support/fault-provider.ts'
import { startLinkProxy, type LinkProxy } from '../support/link-proxy.ts'
import { temporaryDirectory } from '../support/stack.ts'
import { sound } from './answers.ts'
import { newCustomer, worldConfig, type World } from './world.ts'

/** A world whose worker reaches its daemon through a proxy that can fail. */
export interface DaemonWorld extends World {
  readonly link: LinkProxy
}

export const MODEL = 'sound'

const ADMIN_TOKEN = 'admin-token-of-the-fault-runs'

/** The provider is always well; what it takes on a busy machine must not be taken for silence. */
const PATIENT = {
  headers_ms: 30_000,
  first_delta_ms: 30_000,
  idle_ms: 30_000,
  sync_attempt_ms: 30_000,
}

/** The parts of the real stack, started one by one, with the proxy put in between. */
export async function openDaemonWorld(): Promise<DaemonWorld> {
  const home = temporaryDirectory()
  const provider = await startFaultProvider(() => sound)
  const configPath = join(home, 'config.json')
  const config = worldConfig([{ model: MODEL, at: 'alpha' }], provider.port, provider.port, {
    timeouts: PATIENT,
  })
  writeFileSync(configPath, JSON.stringify(config))
  const bundlePath = join(home, 'worker.js')
  await writeLocalWorkerBundle(bundlePath)
  const inner = await makeLinkCertificates(Date.now())
  const outer = await makeLinkCertificates(Date.now())
  const stranger = await makeLinkCertificates(Date.now())

  const daemon = await startDaemon(
    {
      mode: 'local',
      configText: null,
      configPath,
      stateDir: home,
      adminToken: ADMIN_TOKEN,
      link: {
        port: 0,
        host: '127.0.0.1',
        serverCertPem: inner.server.certPem,
        serverKeyPem: inner.server.keyPem,
        workerCertPem: inner.worker.certPem,
      },
      maxStreams: 1_000,
      platform: 'simulated',
      ownUrl: 'http://127.0.0.1:8787',
      tls: null,
      release: null,
      workerBundlePath: bundlePath,
    },
    join(home, 'enclave.log'),
    () => {},
  )
  const link = await startLinkProxy(
    { port: daemon.ready.linkPort, worker: inner.worker, serverCertPem: inner.server.certPem },
    outer.server,
    stranger.server,
  )
  const storageDir = join(home, 'storage')
  mkdirSync(storageDir)
  const plan = {
    script: readFileSync(bundlePath, 'utf8'),
    port: 0,
    tlsPort: 0,
    tls: daemon.ready.tls,
    link: { port: link.port, worker: outer.worker, serverCertPem: outer.server.certPem },
    storage: { engine: 'durable-object' as const },
    storageDir,
    providerCalls: 'daemon' as const,
    privateWebhooks: true,
    maxOpenRequests: 1_000,
  }
  const binary = await compileWorkerdConfig(plan)
  const worker = await startWorker(binary, { logFile: join(home, 'worker.log') })
  const baseUrl = `http://127.0.0.1:${worker.ready.http}`
  await untilHealthy(baseUrl, 30_000)
  const admin = new AdminApi(baseUrl, ADMIN_TOKEN)
  const pids = { worker: worker.child.pid }
  return {
    stack: {
      local: { base_url: baseUrl, admin_token: ADMIN_TOKEN, pids },
      fetch: (path, init) => fetch(baseUrl + path, init),
    },
    provider,
    admin,
    link,
    newCustomer: (more = {}) => newCustomer(admin, more),
    close: async () => {
      await worker.child.stop(1_000)
      await link.close()
      await daemon.child.stop(1_000)
      await provider.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
