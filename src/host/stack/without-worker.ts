import type { FromDaemon } from '../../protocol/boot.ts'
import { writeLocalWorkerBundle } from '../worker-bundle.ts'
import type { LinkEnd } from './link-binding.ts'
import { makeLinkCertificates } from './link-certificates.ts'
import { Parts } from './parts.ts'
import { readRouterConfig } from './router-config.ts'
import type { Settings } from './settings.ts'
import { storedSecret, type StateDir } from './state-dir.ts'

/** Stand-in and daemon without a worker, for another host to run. */
export interface WithoutWorker {
  readonly link: LinkEnd
  readonly adminToken: string
  /** The bundled worker. */
  readonly bundlePath: string
  stop(): Promise<void>
}

const GRACE_MS = 1_000

/** Starts both once; they are not restarted when they end. */
export async function startWithoutWorker(
  settings: Settings,
  state: StateDir,
  onDaemonMessage: (message: FromDaemon) => void,
): Promise<WithoutWorker> {
  const config = readRouterConfig(settings.configPath)
  const adminToken = storedSecret(state, 'admin-token', settings.adminToken)
  const bundlePath = state.file('worker.js')
  await writeLocalWorkerBundle(bundlePath)
  const link = await makeLinkCertificates(Date.now())
  const parts = new Parts({
    settings,
    mode: 'local',
    platform: 'simulated',
    ownUrl: `http://127.0.0.1:${settings.port}`,
    state,
    config,
    adminToken,
    link,
    bundlePath,
    onDaemonMessage,
  })
  const standin = config.usesStandin ? await parts.standin() : undefined
  const enclave = await parts.enclave()
  return {
    link: {
      port: enclave.ready.linkPort,
      worker: link.worker,
      serverCertPem: link.server.certPem,
    },
    adminToken,
    bundlePath,
    stop: async () => {
      await enclave.child.stop(GRACE_MS)
      await standin?.child.stop(GRACE_MS)
    },
  }
}
