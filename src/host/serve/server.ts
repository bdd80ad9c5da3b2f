import { createSerialQueue } from '../../protocol/serial-queue.ts'
import { STORAGE_ENGINES } from '../../protocol/storage-engines.ts'
import type { FromDaemon } from '../../protocol/boot.ts'
import { openFronts, type Fronts } from '../stack/fronts.ts'
import { writeWorkerBundle } from '../worker-bundle.ts'
import { describeMessage } from '../stack/daemon-messages.ts'
import { untilHealthy } from '../stack/healthy.ts'
import type { RestartPolicy } from '../stack/process-restarter.ts'
import { makeLinkCertificates } from '../stack/link-certificates.ts'
import { markLedger } from '../stack/ledger-dir.ts'
import { formatAddress } from '../stack/listen-address.ts'
import { AdminApi } from '../stack/admin-api.ts'
import { Parts } from '../stack/parts.ts'
import type { StateDir } from '../stack/state-dir.ts'
import { Supervisor } from '../stack/supervisor.ts'
import type { UnsealDocument } from '../../protocol/unseal.ts'
import { Unsealing } from './unsealing.ts'
import { Certificates } from './certificates.ts'
import { DaemonRpc } from './daemon-rpc.ts'
import { writesCoreDumps } from '../stack/runtime-check.ts'
import { warnings } from './report.ts'
import type { ServeLog } from './serve-log.ts'
import { dataDiskPlaces } from './options.ts'
import { SERVING_FILE, writeServingFile } from './serving-file.ts'
import { replaceOrReport } from './replace-or-report.ts'
import { tlsSettings, type Start } from './start-plan.ts'
import { startWatchers } from './watchers.ts'

export interface ServerPlan {
  readonly start: Start
  /** @throws StartError when the router cannot serve with the secrets of this document */
  readonly planUnsealed: (secrets: UnsealDocument['secrets'], before: Start) => Start
  readonly state: StateDir
  readonly log: ServeLog
}

/** The first restart follows soon, to keep the interruption short; restarts never stop. */
const POLICY: RestartPolicy = { firstMs: 500, growth: 2, maxDelayMs: 30_000, maxCrashes: undefined }
const HEALTH_TIMEOUT_MS = 60_000
const OTHERS_GRACE_MS = 2_000

/** A router in production: sockets, processes and certificates. Clients that connect before `start` resolves wait. */
export class Server {
  readonly #plan: ServerPlan
  readonly #parts: Parts
  readonly #supervisor: Supervisor
  readonly #fronts: Fronts
  readonly #rpc: DaemonRpc
  readonly #unsealing: Unsealing
  readonly #failure = Promise.withResolvers<never>()
  /** Never resolves; rejects when the router fails to serve with an operator's document. */
  readonly failed = this.#failure.promise
  readonly #closing: (() => void)[] = []
  #start: Start
  #certificates: Certificates | undefined
  #ready = false
  /** For changes of configuration and secrets, so that each starts from the result of the one before. */
  readonly #inTurn = createSerialQueue()

  /** @throws StartError when the worker cannot be built or an address cannot be opened */
  static async create(plan: ServerPlan): Promise<Server> {
    const { options } = plan.start
    const bundlePath = plan.state.file('worker.js')
    await writeWorkerBundle(bundlePath)
    const fronts = await openFronts({
      ...options,
      workers: plan.start.workers,
      unread: (count) => parts.sendToDaemon({ type: 'clients_unread', count }),
      log: plan.log,
    })
    const link = await makeLinkCertificates(Date.now())
    const rpc: DaemonRpc = new DaemonRpc((message) => parts.askDaemon(message))
    const parts: Parts = new Parts({
      settings: { storage: plan.start.storage, maxOpenRequests: options.maxOpenRequests },
      mode: 'production',
      platform: plan.start.platform,
      ownUrl: null,
      fronts,
      workers: plan.start.workers,
      carriers: plan.start.carriers,
      probe: true,
      secrets: plan.start.providerSecrets,
      state: plan.state,
      config: plan.start.config,
      adminToken: plan.start.adminToken,
      link,
      bundlePath,
      onDaemonMessage: (message: FromDaemon) => {
        rpc.receive(message)
        plan.log(`  enclave  ${describeMessage(message)}`)
        if (message.type === 'unseal_offered') void server.#take(message.document)
      },
      onDaemonEnd: () => rpc.ended(),
    })
    const unsealing = new Unsealing({
      parts,
      rpc,
      link,
      dataDisk: dataDiskPlaces(options),
      plan: (secrets) => plan.planUnsealed(secrets, server.#start),
      log: plan.log,
    })
    const server: Server = new Server(plan, { parts, fronts, rpc, unsealing })
    server.#closing.push(
      startWatchers({
        supervisor: server.#supervisor,
        daemonLink: () => parts.daemonLink,
        carriers: {
          links: () => parts.carrierLinks,
          end: (port) => parts.sendToDaemon({ type: 'end_carrier', port }),
        },
        ledgerLink: () => parts.ledgerLink,
        upright: () => server.#ready || server.sealed,
        serving: () => (server.#ready ? server.#start : undefined),
        log: plan.log,
      }),
    )
    return server
  }

  private constructor(
    plan: ServerPlan,
    {
      parts,
      fronts,
      rpc,
      unsealing,
    }: { parts: Parts; fronts: Fronts; rpc: DaemonRpc; unsealing: Unsealing },
  ) {
    this.#plan = plan
    this.#start = plan.start
    this.#parts = parts
    this.#fronts = fronts
    this.#rpc = rpc
    this.#unsealing = unsealing
    this.failed.catch(() => {})
    this.#supervisor = new Supervisor({
      parts,
      standin: plan.start.config.usesStandin,
      workers: plan.start.workers,
      policy: POLICY,
      log: plan.log,
      changed: () => this.#publish(),
    })
  }

  /** Whether the router waits for its secrets. */
  get sealed(): boolean {
    return this.#start.adminToken === null
  }

  /**
   * Starts all parts. Resolves once every part answers, or, where the router is sealed, once it waits for its secrets.
   * @throws StartError when a part does not start
   */
  async start(): Promise<void> {
    this.#warn(this.#start)
    // A reload that is requested in the meantime needs the daemon, so it must wait.
    await this.#inTurn(() => this.#supervisor.startEnclave())
    if (!this.sealed) return this.#serve()
    this.#fronts.relayTo(await this.#unsealing.open())
    this.#publish()
    const where = `https ${this.#httpsAddress}`
    this.#plan.log(`  sealed   waits for a document of its operator: ${where}`, 'sealed')
  }

  async #serve(): Promise<void> {
    const { log, state } = this.#plan
    await this.#supervisor.startWorkers()
    const tell = (last: string) => log(`  waiting  not healthy yet: ${last}`)
    await untilHealthy(this.#httpUrl, HEALTH_TIMEOUT_MS, { tell })
    markLedger(state, this.#start.storage.engine)
    this.#ready = true
    this.#publish()
    const where = `https ${this.#httpsAddress}, ${this.#httpUrl}`
    log(`  Confidential Model Router is serving: ${where}`, 'serving')
    const { tls } = this.#parts
    if (tls === undefined) return
    // Uses the current settings: there may have been a reload since the workers were started.
    this.#certificates = new Certificates(
      {
        daemon: this.#rpc,
        state,
        challengeAt: this.#start.options.acmeHttp,
        show: (material) => {
          this.#parts.tls = material
          return this.#replaceWorkers()
        },
        log,
        now: Date.now,
      },
      tlsSettings(this.#start),
      tls,
    )
    void this.#certificates.start()
  }

  /** Applies a document of the operator: the first one unseals the router, a later one replaces its secrets. */
  #take(document: UnsealDocument): Promise<void> {
    return this.#inTurn(() => this.#takeNow(document))
  }

  async #takeNow(document: UnsealDocument): Promise<void> {
    const before = this.#start
    const start = await this.#unsealing.take(document)
    if (start === undefined) return
    this.#start = start
    try {
      if (before.adminToken === null) {
        await this.#serve()
        await this.#unsealing.opened(document, new AdminApi(this.#httpUrl, start.adminToken ?? ''))
      } else if (before.storage.secret !== start.storage.secret) await this.#replaceWorkers()
    } catch (error) {
      this.#failure.reject(error)
    }
  }

  /**
   * Applies a changed configuration and changed secrets without interruption. The daemon decides: if it refuses them,
   * nothing here uses them, and the daemon reports the reason itself.
   * @throws StartError when there is a reason not to serve with them
   * @throws Error when the daemon does not answer; the former ones stay in effect
   */
  reload(plan: (given?: UnsealDocument['secrets']) => Start): Promise<void> {
    return this.#inTurn(async () => {
      const start = plan(this.#start.given)
      const { config, providerSecrets: secrets, adminToken } = start
      const offered = { config, secrets, adminToken }
      const refusal = await this.#rpc.reloaded((id) => this.#parts.offer(offered, id))
      if (refusal !== null) return
      this.#parts.adopt(offered)
      this.#warn(start)
      this.#start = { ...start, storage: this.#start.storage }
      void this.#certificates?.reload(tlsSettings(start))
    })
  }

  /** Moves to a new TLS key. */
  renewTls(): void {
    void this.#certificates?.renew()
  }

  /**
   * Stops the router: running requests get `graceMs` to finish; meanwhile every new one is answered with 503 and
   * `Retry-After`.
   */
  async stop(graceMs: number): Promise<void> {
    this.#ready = false
    this.#plan.state.remove(SERVING_FILE)
    this.#certificates?.close()
    for (const close of this.#closing) close()
    this.#unsealing.close()
    this.#fronts.refuse(this.#parts.tls ?? null)
    await this.#supervisor.stop(graceMs, OTHERS_GRACE_MS)
    await this.#fronts.close()
  }

  /**
   * Replaces the workers. Durable Objects have one writer: with them, connections wait until the old process is gone.
   */
  #replaceWorkers(): Promise<void> {
    const { options, storage } = this.#start
    const together = STORAGE_ENGINES[storage.engine].shared
    return this.#supervisor.replaceWorkers(options.drainSeconds * 1_000, together)
  }

  get #httpsAddress(): string {
    const { https } = this.#plan.start.options
    return formatAddress({ ...https, port: this.#fronts.httpsPort })
  }

  get #httpUrl(): string {
    const { http } = this.#plan.start.options
    return `http://${formatAddress({ ...http, port: this.#fronts.httpPort })}`
  }

  #warn({ config, platform }: Start): void {
    const { log } = this.#plan
    const footing = { platform, standin: config.usesStandin, coreDumps: writesCoreDumps() }
    for (const line of warnings(config.config, footing)) log(line)
    if (platform === 'simulated') log('  the platform is simulated', 'simulated_platform')
  }

  #publish(): void {
    const { daemon } = this.#parts
    if ((!this.#ready && !this.sealed) || daemon === undefined) return
    const serving = {
      http_url: this.#httpUrl,
      https_port: this.#fronts.httpsPort,
      sealed: this.sealed,
      simulated: this.#plan.start.platform === 'simulated',
      root_key: daemon.rootKeyPath,
      pid: process.pid,
      parts: Object.fromEntries(this.#supervisor.pids),
    }
    const { state, log } = this.#plan
    const write = () => writeServingFile(state, serving)
    replaceOrReport(SERVING_FILE, write, (text) => log(`  ${text}`))
  }
}
