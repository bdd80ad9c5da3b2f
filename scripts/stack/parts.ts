import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DaemonBoot, DaemonReady, FromDaemon } from '../../src/protocol/boot.ts'
import type { Child } from './child.ts'
import type { Started } from './keeper.ts'
import type { LinkCertificates } from './link-certificates.ts'
import type { RouterConfigFile } from './router-config.ts'
import type { Settings } from './settings.ts'
import { startDaemon, tellDaemon } from './start-daemon.ts'
import { startStandin } from './start-standin.ts'
import { startWorker, type WorkerPorts } from './start-worker.ts'
import type { StateDir } from './state-dir.ts'
import { compileWorkerdConfig } from './workerd-config.ts'

/** What the parts of one stack are made of. */
export interface PartsPlan {
  readonly settings: Settings
  readonly state: StateDir
  readonly config: RouterConfigFile
  readonly adminToken: string
  readonly link: LinkCertificates
  /** The bundled worker. */
  readonly bundlePath: string
  /** What the daemon says after it was ready. */
  readonly daemonSaid: (message: FromDaemon) => void
}

const EFFECTIVE_CONFIG = 'config.json'

/**
 * How each part is started. What a part told the first time (its port, its TLS key, its release) is kept in
 * memory and given to its successors, so that the other parts and the clients find everything where it was.
 */
export class Parts {
  readonly #plan: PartsPlan
  readonly #logDir: string
  #standinPort = 0
  #daemon: DaemonReady | undefined
  #daemonChild: Child | undefined
  #ports: WorkerPorts

  constructor(plan: PartsPlan) {
    this.#plan = plan
    this.#logDir = plan.state.directory('log')
    this.#ports = { http: plan.settings.port, https: plan.settings.tlsPort }
  }

  /** What the daemon told when it was last up. */
  get daemon(): DaemonReady | undefined {
    return this.#daemon
  }

  /** The ports the worker listens on; before it was up, those it is to listen on. */
  get ports(): WorkerPorts {
    return this.#ports
  }

  async standin(): Promise<Started<number>> {
    const started = await startStandin(this.#standinPort, this.logFile('standin'))
    this.#standinPort = started.ready
    return started
  }

  /** The stand-in, if there is one, must be up. */
  async enclave(): Promise<Started<DaemonReady>> {
    const { config, daemonSaid } = this.#plan
    if (this.#daemon === undefined) this.#writeConfig(config)
    const started = await startDaemon(this.#boot(), this.logFile('enclave'), daemonSaid)
    this.#daemon = started.ready
    this.#daemonChild = started.child
    return started
  }

  /** The daemon must have been up once. */
  async worker(): Promise<Started<WorkerPorts>> {
    const { bundlePath, link, settings, state, config } = this.#plan
    const daemon = this.#daemon
    if (daemon === undefined) throw new Error('the worker needs the daemon first')
    const binary = await compileWorkerdConfig({
      script: readFileSync(bundlePath, 'utf8'),
      port: this.#ports.http,
      tlsPort: this.#ports.https,
      tls: daemon.tls,
      link: { port: daemon.linkPort, worker: link.worker, serverCertPem: link.server.certPem },
      storage: settings.storage,
      storageDir: state.directory('storage'),
      privateNetwork: config.config.service.mode === 'local',
    })
    const started = await startWorker(binary, this.logFile('worker'))
    this.#ports = started.ready
    return started
  }

  /** Gives the daemon a changed configuration file. */
  reload(config: RouterConfigFile): void {
    this.#writeConfig(config)
    if (this.#daemonChild !== undefined) tellDaemon(this.#daemonChild, { type: 'reload' })
  }

  logFile(name: string): string {
    return join(this.#logDir, `${name}.log`)
  }

  /** The daemon reads the operator's own file, unless the stand-in's address has to be filled in. */
  #writeConfig(config: RouterConfigFile): void {
    if (!config.usesStandin) return
    this.#plan.state.write(EFFECTIVE_CONFIG, config.textFor(this.#standinPort))
  }

  #boot(): DaemonBoot {
    const { adminToken, bundlePath, config, link, state } = this.#plan
    const { service } = config.config
    const simulated = service.mode === 'local' || service.allow_simulated
    const tls = this.#daemon?.tls
    return {
      configPath: config.usesStandin ? state.file(EFFECTIVE_CONFIG) : config.path,
      stateDir: state.path,
      adminToken,
      link: {
        port: this.#daemon?.linkPort ?? 0,
        host: '127.0.0.1',
        serverCertPem: link.server.certPem,
        serverKeyPem: link.server.keyPem,
        workerCertPem: link.worker.certPem,
      },
      platform: simulated ? 'simulated' : 'configfs-tsm',
      tls: tls === undefined ? null : { certPem: tls.certPem, keyPem: tls.keyPem },
      release: this.#daemon?.release ?? null,
      workerBundlePath: bundlePath,
    }
  }
}
