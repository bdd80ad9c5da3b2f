import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DaemonReady, FromDaemon, TlsMaterial, ToDaemon } from '../../protocol/boot.ts'
import { STORAGE_ENGINES } from '../../protocol/storage-engines.ts'
import { readConsolePage } from '../console-page.ts'
import { carrierOf } from './carrier-plan.ts'
import type { Child } from './child.ts'
import { daemonBoot, EFFECTIVE_CONFIG } from './daemon-boot.ts'
import { ledgerDir, refuseDamage } from './ledger-dir.ts'
import { LedgerPart } from './ledger-part.ts'
import type { LinkEnd } from './link-binding.ts'
import { openRequestsOf } from './open-requests.ts'
import type { GivenSecrets, OfferedConfig, PartsPlan } from './parts-plan.ts'
import type { Started } from './process-restarter.ts'
import type { RouterConfigFile } from './router-config.ts'
import { startDaemon, sendToDaemon } from './start-daemon.ts'
import { startStandin, sendToStandin, type StandinReady } from './start-standin.ts'
import { startWorker, type WorkerPorts } from './start-worker.ts'
import type { WorkerName } from './worker-name.ts'
import { compileWorkerdConfig } from './workerd-config.ts'

/**
 * Starts each part. The results of its first start (port, TLS key, release) are kept in memory and reused when it is
 * restarted, so that the other parts and the clients are not affected.
 */
export class Parts {
  #plan: PartsPlan
  readonly #logDir: string
  #standin: StandinReady | undefined
  #standinChild: Child | undefined
  #daemon: DaemonReady | undefined
  #daemonChild: Child | undefined
  #tls: TlsMaterial | undefined
  readonly #ledger = new LedgerPart()
  /** The configuration for a start of the daemon in production: the one in effect, initially the first one. */
  #configText: string | undefined

  constructor(plan: PartsPlan) {
    this.#plan = plan
    this.#logDir = plan.state.directory('log')
  }

  /** The ready message of the daemon's last start. */
  get daemon(): DaemonReady | undefined {
    return this.#daemon
  }

  /** The workers' link to the daemon, once it was started. */
  get daemonLink(): LinkEnd | undefined {
    const { worker, server } = this.#plan.link
    const port = this.#daemon?.linkPort
    return port === undefined ? undefined : { port, worker, serverCertPem: server.certPem }
  }

  /** The links to the daemon's carriers, once it was started. */
  get carrierLinks(): readonly LinkEnd[] {
    const { worker, server } = this.#plan.link
    const { carrierPorts = [] } = this.#daemon ?? {}
    return carrierPorts.map((port) => ({ port, worker, serverCertPem: server.certPem }))
  }

  /** The key and certificate that workers use from their next start on. */
  get tls(): TlsMaterial | undefined {
    return this.#tls
  }

  set tls(material: TlsMaterial | undefined) {
    this.#tls = material
  }

  async standin(): Promise<Started<number>> {
    const { child, ready } = await startStandin(this.#standin, this.logFile('standin'))
    this.#standin = ready
    this.#standinChild = child
    this.#attestStandin()
    return { child, ready: ready.port }
  }

  /** Starts the daemon. The stand-in, if there is one, must be running. */
  async enclave(): Promise<Started<DaemonReady>> {
    if (this.#daemon === undefined) this.#configText = this.#offer(this.#plan.config)
    const said = (message: FromDaemon) => this.#onDaemonMessage(message)
    const former = { ready: this.#daemon, tls: this.#tls, configText: this.#configText }
    const boot = daemonBoot(this.#plan, former)
    const started = await startDaemon(boot, this.logFile('enclave'), said)
    this.#daemon = started.ready
    this.#tls ??= started.ready.tls
    this.#daemonChild = started.child
    void started.child.ended.then(() => this.#plan.onDaemonEnd?.())
    this.#attestStandin()
    return started
  }

  /** Whether the storage engine has a process of its own on this host. */
  get hasLedger(): boolean {
    return STORAGE_ENGINES[this.#plan.settings.storage.engine].keeper === 'ledger'
  }

  /** @throws StartError when the ledger of an embedded engine is damaged, or is missing although it was in use */
  checkLedger(): void {
    refuseDamage(this.#plan.state, this.#plan.settings.storage.engine)
  }

  /** The workers' link to the ledger process, once there is one. */
  get ledgerLink(): LinkEnd | undefined {
    return this.#ledger.link
  }

  ledger(): Promise<Started<number>> {
    return this.#ledger.start(this.#ledgerDir(), this.logFile('ledger'))
  }

  /** Starts a worker. The daemon must have been started before, and the ledger process where the engine has one. */
  async worker(name: WorkerName = 'worker'): Promise<Started<WorkerPorts>> {
    const { bundlePath, settings, fronts, probe = false } = this.#plan
    const link = this.#linkOf(name)
    const { link: ledger } = this.#ledger
    const tls = this.#tls
    if (link === undefined || tls === undefined)
      throw new Error('the worker needs the daemon first')
    const drainToken = randomBytes(32).toString('base64url')
    const binary = await compileWorkerdConfig({
      script: readFileSync(bundlePath, 'utf8'),
      consolePage: readConsolePage(),
      port: 0,
      tlsPort: 0,
      probe,
      drainToken,
      tls,
      link,
      ...(ledger === undefined ? {} : { ledger }),
      storage: settings.storage,
      databaseCa: this.#plan.config.config.service.database_ca,
      storageDir: this.#ledgerDir(),
      maxOpenRequests: openRequestsOf(settings),
      providerCalls: settings.providerCalls ?? 'daemon',
      privateWebhooks: this.#plan.mode === 'local',
    })
    const started = await startWorker(binary, { logFile: this.logFile(name), probe, drainToken })
    fronts?.of(name).relayTo(started.ready)
    return started
  }

  /** Lets new clients wait for the next worker of that name. Resolves when the current one can be told to end. */
  async holdConnections(name: WorkerName): Promise<void> {
    await this.#plan.fronts?.of(name).hold()
  }

  /** Makes the daemon of a local stack read the configuration again, with the address of the stand-in. */
  reload(config: RouterConfigFile): void {
    this.#plan = { ...this.#plan, config }
    const configText = this.#offer(config)
    const given = configText === undefined ? {} : { configText }
    this.sendToDaemon({ type: 'reload', ...given })
  }

  /**
   * Offers the daemon a configuration and the values of its variables; neither is stored here before `adopt`.
   * @param id repeated in the daemon's answer
   * @throws Error when no daemon is running
   */
  offer({ config, secrets, adminToken }: OfferedConfig, id: number): void {
    const configText = this.#offer(config)
    this.askDaemon({
      type: 'reload',
      id,
      secrets: { ...secrets },
      ...(configText === undefined ? {} : { configText }),
      ...(adminToken === null ? {} : { adminToken }),
    })
  }

  /**
   * Must be called when the daemon has put an offered configuration into effect: parts that start from now on use it.
   */
  adopt(offered: OfferedConfig): void {
    this.#plan = { ...this.#plan, ...offered }
  }

  /**
   * Offers the daemon the secrets of a document; they are not stored here before `unsealed`.
   * @param id repeated in the daemon's answer
   * @throws Error when no daemon is running
   */
  offerSecrets({ adminToken, secrets }: GivenSecrets, id: number): void {
    this.askDaemon({ type: 'reload', id, secrets: { ...secrets }, adminToken })
  }

  /** Must be called when the secrets took effect: parts that start from now on use them. */
  unsealed({ adminToken, secrets, storage }: GivenSecrets): void {
    const settings = { ...this.#plan.settings, storage }
    this.#plan = { ...this.#plan, adminToken, secrets, settings }
  }

  /**
   * Sends the daemon a message that it has to answer.
   * @throws Error when no daemon is running
   */
  askDaemon(message: ToDaemon): void {
    if (this.#daemonChild?.process.connected !== true) {
      throw new Error('the enclave daemon is being restarted: try again')
    }
    this.sendToDaemon(message)
  }

  /** Sends the daemon a message; it is lost while no daemon is running. */
  sendToDaemon(message: ToDaemon): void {
    if (this.#daemonChild !== undefined) sendToDaemon(this.#daemonChild, message)
  }

  logFile(name: string): string {
    return join(this.#logDir, `${name}.log`)
  }

  /** A worker's link to the daemon. */
  #linkOf(name: WorkerName): LinkEnd | undefined {
    return carrierOf(name, this.carrierLinks) ?? this.daemonLink
  }

  /**
   * In production, returns the configuration, which is sent to the daemon. In a local stack, the daemon reads the
   * operator's own file, or a copy of it in which the stand-in's address was filled in.
   */
  #offer(config: RouterConfigFile): string | undefined {
    const text = this.#standin === undefined ? config.text : config.textFor(this.#standin)
    if (this.#plan.mode === 'production') return text
    if (config.usesStandin) this.#plan.state.write(EFFECTIVE_CONFIG, text)
    return undefined
  }

  /** Keeps the configuration that took effect, so that a restarted daemon does not get one that was refused. */
  #onDaemonMessage(message: FromDaemon): void {
    if (message.type === 'reloaded' && this.#plan.mode === 'production') {
      this.#configText = message.configText
    }
    this.#plan.onDaemonMessage(message)
  }

  /**
   * Gives the stand-in the daemon's simulated chip, once there is one, because it counts as a guest on the same
   * simulated machine.
   */
  #attestStandin(): void {
    const chip = this.#daemon?.release?.simulated
    if (this.#standinChild !== undefined && chip) sendToStandin(this.#standinChild, chip)
  }

  #ledgerDir(): string {
    const { settings, state } = this.#plan
    return ledgerDir(state, settings.storage.engine)
  }
}
