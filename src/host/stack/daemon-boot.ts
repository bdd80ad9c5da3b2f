import type { DaemonBoot, DaemonReady, TlsMaterial } from '../../protocol/boot.ts'
import { daemonDir } from './accounts.ts'
import { streamsOfThread } from './carrier-plan.ts'
import { openRequestsOf } from './open-requests.ts'
import type { PartsPlan } from './parts-plan.ts'

/** The file in the state directory that holds the configuration with the stand-in's address filled in. */
export const EFFECTIVE_CONFIG = 'config.json'

/** The state that a start of the daemon takes over from earlier starts. */
export interface FormerStarts {
  readonly ready: DaemonReady | undefined
  readonly tls: TlsMaterial | undefined
  /** The configuration in production; undefined in a local stack. */
  readonly configText: string | undefined
}

/** Builds the boot message of the daemon, with the ports, the TLS key and the release of its first start. */
export function daemonBoot(plan: PartsPlan, { ready, tls, configText }: FormerStarts): DaemonBoot {
  const { adminToken, bundlePath, config, link, mode, ownUrl, platform, secrets, state } = plan
  const { settings, workers = 1, carriers = 0 } = plan
  return {
    mode,
    configPath: mode === 'local' && config.usesStandin ? state.file(EFFECTIVE_CONFIG) : config.path,
    configText: configText ?? null,
    stateDir: daemonDir(state),
    adminToken,
    link: {
      port: ready?.linkPort ?? 0,
      host: '127.0.0.1',
      serverCertPem: link.server.certPem,
      serverKeyPem: link.server.keyPem,
      workerCertPem: link.worker.certPem,
    },
    carrierPorts: [...(ready?.carrierPorts ?? anyPorts(carriers))],
    maxStreams: streamsOfThread(workers, carriers, openRequestsOf(settings)),
    platform,
    ownUrl,
    ...(secrets === undefined ? {} : { secrets: { ...secrets } }),
    tls: tls === undefined ? null : { certPem: tls.certPem, keyPem: tls.keyPem },
    release: ready?.release ?? null,
    workerBundlePath: bundlePath,
  }
}

function anyPorts(count: number): number[] {
  return Array.from({ length: count }, () => 0)
}
