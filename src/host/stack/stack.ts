import type { FromDaemon } from '../../protocol/boot.ts'
import { writeLocalWorkerBundle } from '../worker-bundle.ts'
import { AdminApi } from './admin-api.ts'
import { describeMessage } from './daemon-messages.ts'
import { firstCustomer, type FirstCustomer } from './first-customer.ts'
import { untilHealthy } from './healthy.ts'
import { LOCAL_POLICY } from './process-restarter.ts'
import { makeLinkCertificates } from './link-certificates.ts'
import { LOCAL_FILE, writeLocalFile } from './local-file.ts'
import { Parts } from './parts.ts'
import type { RouterConfigFile } from './router-config.ts'
import { untilProvidersJudged } from './providers-judged.ts'
import { screen } from './screen.ts'
import type { Settings } from './settings.ts'
import { storedSecret, type StateDir } from './state-dir.ts'
import { Supervisor } from './supervisor.ts'
import { startWebhookRounds } from './webhook-rounds.ts'
import { openFronts, type Fronts } from './fronts.ts'

export interface StackPlan {
  readonly settings: Settings
  readonly state: StateDir
  readonly config: RouterConfigFile
  /** Prints one line, or the welcome text. */
  readonly log: (text: string) => void
}

const HEALTH_TIMEOUT_MS = 60_000
const JUDGED_TIMEOUT_MS = 10_000
/** A local stack proves nothing about its machine, so it always uses a simulated one. */
const LOCAL = { mode: 'local', platform: 'simulated' } as const

/** Together less than the five seconds in which a stop must be complete. */
const WORKER_GRACE_MS = 3_000
const OTHERS_GRACE_MS = 1_000

/** The local stack: all parts, a first customer, and a file and a screen that describe them. */
export class Stack {
  readonly #plan: StackPlan
  readonly #adminToken: string
  readonly #parts: Parts
  readonly #fronts: Fronts
  readonly #supervisor: Supervisor
  #customer: FirstCustomer | undefined
  #hasWebhooks: boolean
  #endRounds: () => void = () => {}

  /**
   * Builds the worker, generates the keys of the link and opens the sockets; clients wait from now on.
   * @throws StartError when the runtime is unsuitable, the state directory is in use or an address cannot be opened
   */
  static async create(plan: StackPlan): Promise<Stack> {
    const adminToken = storedSecret(plan.state, 'admin-token', plan.settings.adminToken)
    const bundlePath = plan.state.file('worker.js')
    await writeLocalWorkerBundle(bundlePath)
    const link = await makeLinkCertificates(Date.now())
    const onDaemonMessage = (message: FromDaemon) =>
      plan.log(`  enclave  ${describeMessage(message)}`)
    const { port, tlsPort, connectionsPerSource, unreadSeconds } = plan.settings
    const fronts = await openFronts({
      http: { host: '127.0.0.1', port },
      https: { host: '127.0.0.1', port: tlsPort },
      workers: 1,
      connectionsPerSource,
      unreadSeconds,
      unread: (count) => parts.sendToDaemon({ type: 'clients_unread', count }),
      log: plan.log,
    })
    const ownUrl = baseUrlOf(fronts)
    const made = { adminToken, bundlePath, link, ...LOCAL, ownUrl, onDaemonMessage, fronts }
    const parts = new Parts({ ...plan, ...made })
    return new Stack(plan, adminToken, parts, fronts)
  }

  private constructor(plan: StackPlan, adminToken: string, parts: Parts, fronts: Fronts) {
    this.#plan = plan
    this.#adminToken = adminToken
    this.#parts = parts
    this.#fronts = fronts
    this.#hasWebhooks = plan.config.config.service.webhooks !== undefined
    this.#supervisor = new Supervisor({
      parts,
      standin: plan.config.usesStandin,
      workers: 1,
      policy: LOCAL_POLICY,
      log: plan.log,
      changed: () => this.#publish(),
    })
  }

  /** Never resolves; rejects with a StartError when a part crashed too often. */
  get failed(): Promise<never> {
    return this.#supervisor.failed
  }

  /**
   * Starts every part in order; writes `local.json` when all answer.
   * @throws StartError when a part does not become ready; the message includes the end of its log
   */
  async start(): Promise<void> {
    const { config, state, log } = this.#plan
    await this.#supervisor.start()
    const tell = (last: string) => log(`  waiting  not healthy yet: ${last}`)
    await untilHealthy(this.#baseUrl, HEALTH_TIMEOUT_MS, { tell })
    const admin = new AdminApi(this.#baseUrl, this.#adminToken)
    await untilProvidersJudged(admin, JUDGED_TIMEOUT_MS)
    this.#customer = await firstCustomer(state, this.#baseUrl, this.#adminToken)
    this.#publish()
    this.#endRounds = startWebhookRounds(() => this.#reported())
    log(
      screen({
        baseUrl: this.#baseUrl,
        tlsBaseUrl: this.#tlsBaseUrl,
        apiKey: this.#customer.apiKey,
        model: firstChatModel(config),
        stateDir: state.path,
      }),
    )
  }

  /** Makes the daemon read the configuration again; it keeps the last valid one if the new one is invalid. */
  reload(config: RouterConfigFile): void {
    this.#hasWebhooks = config.config.service.webhooks !== undefined
    this.#parts.reload(config)
  }

  async stop(): Promise<void> {
    this.#plan.state.remove(LOCAL_FILE)
    this.#endRounds()
    this.#fronts.refuse(this.#parts.tls ?? null)
    await this.#supervisor.stop(WORKER_GRACE_MS, OTHERS_GRACE_MS)
    await this.#fronts.close()
  }

  #reported() {
    if (!this.#hasWebhooks) return undefined
    return { baseUrl: this.#baseUrl, adminToken: this.#adminToken }
  }

  get #baseUrl(): string {
    return baseUrlOf(this.#fronts)
  }

  get #tlsBaseUrl(): string {
    return `https://127.0.0.1:${this.#fronts.httpsPort}`
  }

  #publish(): void {
    const { daemon } = this.#parts
    const { pids } = this.#supervisor
    const [worker, enclave] = [pids.get('worker'), pids.get('enclave')]
    const others = [...pids].filter(([name]) => name === 'standin' || name === 'ledger')
    if (!this.#customer || !daemon || worker === undefined || enclave === undefined) return
    writeLocalFile(this.#plan.state, {
      base_url: this.#baseUrl,
      tls_base_url: this.#tlsBaseUrl,
      api_key: this.#customer.apiKey,
      customer_id: this.#customer.customerId,
      admin_token: this.#adminToken,
      root_key: daemon.rootKeyPath,
      pid: process.pid,
      pids: { worker, enclave, ...Object.fromEntries(others) },
    })
  }
}

function baseUrlOf({ httpPort }: Fronts): string {
  return `http://127.0.0.1:${httpPort}`
}

function firstChatModel({ config }: RouterConfigFile): string {
  return config.routes.find((route) => route.type === 'chat' && !route.ocr)?.model_key ?? 'auto'
}
