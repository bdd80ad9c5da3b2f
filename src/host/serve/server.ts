import { STORAGE_ENGINES } from '../../protocol/storage-engines.ts'
import type { FromDaemon } from '../../protocol/boot.ts'
import { openFronts, type Fronts } from '../stack/fronts.ts'
import { writeWorkerBundle } from '../worker-bundle.ts'
import { inWords } from '../stack/daemon-messages.ts'
import { untilHealthy } from '../stack/healthy.ts'
import type { RestartPolicy } from '../stack/process-restarter.ts'
import { makeLinkCertificates } from '../stack/link-certificates.ts'
import { formatAddress } from '../stack/listen-address.ts'
import { Parts } from '../stack/parts.ts'
import type { StateDir } from '../stack/state-dir.ts'
import { Supervisor } from '../stack/supervisor.ts'
import { Certificates } from './certificates.ts'
import { DaemonRpc } from './daemon-rpc.ts'
import { watchLiveness } from './liveness.ts'
import { probesOf } from './probes.ts'
import { warnings } from './report.ts'
import { SERVING_FILE, writeServingFile } from './serving-file.ts'
import { tlsSettings, type Start } from './start-plan.ts'

export interface ServerPlan {
  readonly start: Start
  readonly state: StateDir
  readonly tell: (text: string) => void
}

/** A restart costs a moment of service, so the first comes soon; it is never given up. */
const POLICY: RestartPolicy = { firstMs: 500, growth: 2, longestMs: 30_000, mostDeaths: undefined }
const HEALTHY_WITHIN_MS = 60_000
const OTHERS_GRACE_MS = 2_000
const LIVENESS = { everyMs: 5_000, misses: 6 }

/** A router in production mode: its sockets, the parts behind them, and their certificates. */
export class Server {
  readonly #plan: ServerPlan
  readonly #parts: Parts
  readonly #supervisor: Supervisor
  readonly #fronts: Fronts
  readonly #talk: DaemonRpc
  readonly #closing: (() => void)[] = []
  #certificates: Certificates | undefined
  #ready = false

  /** Builds the worker and opens the sockets; clients can connect from now on and wait. @throws StartError */
  static async create(plan: ServerPlan): Promise<Server> {
    const { options } = plan.start
    const bundlePath = plan.state.file('worker.js')
    await writeWorkerBundle(bundlePath)
    const fronts = await openFronts({ ...options, tell: plan.tell })
    const link = await makeLinkCertificates(Date.now())
    const talk: DaemonRpc = new DaemonRpc((message) => parts.tellDaemon(message))
    const parts = new Parts({
      settings: {
        storage: plan.start.storage,
        maxOpenRequests: options.maxOpenRequests,
      },
      mode: 'production',
      platform: plan.start.platform,
      fronts,
      probe: true,
      secrets: plan.start.providerSecrets,
      state: plan.state,
      config: plan.start.config,
      adminToken: plan.start.adminToken,
      link,
      bundlePath,
      daemonSaid: (message: FromDaemon) => {
        talk.heard(message)
        plan.tell(`  enclave  ${inWords(message)}`)
      },
    })
    const server = new Server(plan, parts, fronts, talk)
    const probes = probesOf(server.#supervisor, link, () => parts.daemon?.linkPort)
    server.#closing.push(
      watchLiveness(() => (server.#ready ? probes.watched() : []), {
        ...LIVENESS,
        tell: plan.tell,
      }),
      () => probes.close(),
    )
    return server
  }

  private constructor(plan: ServerPlan, parts: Parts, fronts: Fronts, talk: DaemonRpc) {
    this.#plan = plan
    this.#parts = parts
    this.#fronts = fronts
    this.#talk = talk
    this.#supervisor = new Supervisor({
      parts,
      standin: plan.start.config.usesStandin,
      workers: plan.start.options.workers,
      policy: POLICY,
      tell: plan.tell,
      changed: () => this.#publish(),
    })
  }

  /** Starts every part; tells and writes where it serves when all answer. @throws StartError */
  async start(): Promise<void> {
    const { tell, start, state } = this.#plan
    this.#warn(start)
    await this.#supervisor.start()
    await untilHealthy(this.#httpUrl, HEALTHY_WITHIN_MS)
    this.#ready = true
    this.#publish()
    const { options } = start
    const https = formatAddress({ ...options.https, port: this.#fronts.httpsPort })
    tell(`  Confidential Model Router is serving: https ${https}, ${this.#httpUrl}`)
    const { tls } = this.#parts
    if (tls === undefined) return
    this.#certificates = new Certificates(
      {
        daemon: this.#talk,
        state,
        challengeAt: options.acmeHttp,
        show: (material) => {
          this.#parts.tls = material
          return this.#replaceWorkers()
        },
        tell,
        now: Date.now,
      },
      tlsSettings(start),
      tls,
    )
    void this.#certificates.start()
  }

  /** Takes over a changed configuration and changed secrets, without a pause; the daemon has the last word. */
  reload(start: Start): void {
    this.#warn(start)
    this.#parts.reload(start.config, start.providerSecrets)
    void this.#certificates?.reload(tlsSettings(start))
  }

  /** Moves to a new TLS key. */
  renewTls(): void {
    void this.#certificates?.renew()
  }

  /**
   * Ends: running requests have `graceMs` to finish, and every new one is answered 503 meanwhile, with the time
   * after which another instance, or this one, should be asked.
   */
  async stop(graceMs: number): Promise<void> {
    this.#ready = false
    this.#plan.state.remove(SERVING_FILE)
    this.#certificates?.close()
    for (const close of this.#closing) close()
    this.#fronts.refuse(this.#parts.tls ?? null)
    await this.#supervisor.stop(graceMs, OTHERS_GRACE_MS)
    await this.#fronts.close()
  }

  /** Durable Objects have one writer: with them, connections wait in the queue until the old process is gone. */
  #replaceWorkers(): Promise<void> {
    const { options, storage } = this.#plan.start
    const together = STORAGE_ENGINES[storage.engine].shared
    return this.#supervisor.replaceWorkers(options.drainSeconds * 1_000, together)
  }

  get #httpUrl(): string {
    const { http } = this.#plan.start.options
    return `http://${formatAddress({ ...http, port: this.#fronts.httpPort })}`
  }

  #warn({ config, platform }: Start): void {
    for (const line of warnings(config.config, platform, config.usesStandin)) this.#plan.tell(line)
  }

  #publish(): void {
    const { daemon } = this.#parts
    if (!this.#ready || daemon === undefined) return
    writeServingFile(this.#plan.state, {
      http_url: this.#httpUrl,
      https_port: this.#fronts.httpsPort,
      simulated: this.#plan.start.platform === 'simulated',
      root_key: daemon.rootKeyPath,
      pid: process.pid,
      parts: Object.fromEntries(this.#supervisor.pids),
    })
  }
}
