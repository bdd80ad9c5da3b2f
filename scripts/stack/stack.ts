import type { FromDaemon } from '../../src/protocol/boot.ts'
import { buildWorker } from '../build.ts'
import { lastLines } from './child.ts'
import { firstCustomer, type FirstCustomer } from './first-customer.ts'
import { untilHealthy } from './healthy.ts'
import { createKeeper, type Keeper, type Started } from './keeper.ts'
import { makeLinkCertificates } from './link-certificates.ts'
import { LOCAL_FILE, writeLocalFile } from './local-file.ts'
import { Parts } from './parts.ts'
import type { RouterConfigFile } from './router-config.ts'
import { screen } from './screen.ts'
import type { Settings } from './settings.ts'
import { StartError } from './start-error.ts'
import { keptSecret, type StateDir } from './state-dir.ts'

export interface StackPlan {
  readonly settings: Settings
  readonly state: StateDir
  readonly config: RouterConfigFile
  /** Prints one line, or the welcome text. */
  readonly tell: (text: string) => void
}

type PartName = 'standin' | 'enclave' | 'worker'

const HEALTHY_WITHIN_MS = 30_000
/** Together below the five seconds in which a stop has to be done. */
const WORKER_GRACE_MS = 3_000
const OTHERS_GRACE_MS = 1_000
const LOG_LINES_TOLD = 12

/** All parts of one local stack, from the first start to the end. */
export class Stack {
  readonly #plan: StackPlan
  readonly #adminToken: string
  readonly #parts: Parts
  readonly #keepers: Readonly<Record<PartName, Keeper>>
  readonly #pids: Partial<Record<PartName, number>> = {}
  readonly #failure = Promise.withResolvers<never>()
  #customer: FirstCustomer | undefined

  /** Builds the worker and makes the keys of the link. Nothing runs yet. */
  static async create(plan: StackPlan): Promise<Stack> {
    const adminToken = keptSecret(plan.state, 'admin-token', plan.settings.adminToken)
    const bundlePath = plan.state.file('worker.js')
    await buildWorker(bundlePath)
    const link = await makeLinkCertificates(Date.now())
    const daemonSaid = (message: FromDaemon) => plan.tell(`  enclave  ${inWords(message)}`)
    const parts = new Parts({ ...plan, adminToken, bundlePath, link, daemonSaid })
    return new Stack(plan, adminToken, parts)
  }

  private constructor(plan: StackPlan, adminToken: string, parts: Parts) {
    this.#plan = plan
    this.#adminToken = adminToken
    this.#parts = parts
    this.#keepers = {
      standin: this.#keep('standin', () => parts.standin(), onPort),
      enclave: this.#keep(
        'enclave',
        () => parts.enclave(),
        (ready) => onPort(ready.linkPort),
      ),
      worker: this.#keep(
        'worker',
        () => parts.worker(),
        (ports) => onPort(ports.http),
      ),
    }
    this.failed.catch(() => {})
  }

  /** Never resolves; rejects with a StartError when a part died too often. */
  get failed(): Promise<never> {
    return this.#failure.promise
  }

  /** Starts every part in order; writes `local.json` when all answer. @throws StartError */
  async start(): Promise<void> {
    const { config, state, tell } = this.#plan
    if (config.usesStandin) await this.#start('standin')
    await this.#start('enclave')
    await this.#start('worker')
    await untilHealthy(this.#baseUrl, HEALTHY_WITHIN_MS)
    this.#customer = await firstCustomer(state, this.#baseUrl, this.#adminToken)
    this.#publish()
    tell(
      screen({
        baseUrl: this.#baseUrl,
        tlsBaseUrl: this.#tlsBaseUrl,
        apiKey: this.#customer.apiKey,
        model: firstChatModel(config),
        stateDir: state.path,
      }),
    )
  }

  /** Has the daemon read the configuration anew; it keeps the last good one if the new one is wrong. */
  reload(config: RouterConfigFile): void {
    this.#parts.reload(config)
  }

  /** Stops every part: the worker first, so that it can end its requests with the daemon's help. */
  async stop(): Promise<void> {
    this.#plan.state.remove(LOCAL_FILE)
    await this.#keepers.worker.stop(WORKER_GRACE_MS)
    await Promise.all([
      this.#keepers.enclave.stop(OTHERS_GRACE_MS),
      this.#keepers.standin.stop(OTHERS_GRACE_MS),
    ])
  }

  get #baseUrl(): string {
    return `http://127.0.0.1:${this.#parts.ports.http}`
  }

  get #tlsBaseUrl(): string {
    return `https://127.0.0.1:${this.#parts.ports.https}`
  }

  async #start(name: PartName): Promise<void> {
    try {
      await this.#keepers[name].start()
    } catch (error) {
      throw new StartError(this.#withLog(name, messageOf(error)), { cause: error })
    }
  }

  #keep<Ready>(
    name: PartName,
    start: () => Promise<Started<Ready>>,
    where: (ready: Ready) => string,
  ): Keeper {
    const say = (text: string) => this.#plan.tell(`  ${name.padEnd(8)} ${text}`)
    return createKeeper(start, Date.now, {
      up: (ready, pid) => {
        this.#pids[name] = pid
        say(`up: ${where(ready)}, pid ${pid}`)
        this.#publish()
      },
      died: (why, restartMs) => say(`died: ${why}; back in ${restartMs / 1000} s`),
      gaveUp: (why) => {
        const text = this.#withLog(name, `died five times within a minute, at last: ${why}`)
        this.#failure.reject(new StartError(text))
      },
    })
  }

  #publish(): void {
    const { daemon } = this.#parts
    const { worker, enclave, standin } = this.#pids
    if (!this.#customer || !daemon || worker === undefined || enclave === undefined) return
    writeLocalFile(this.#plan.state, {
      base_url: this.#baseUrl,
      tls_base_url: this.#tlsBaseUrl,
      api_key: this.#customer.apiKey,
      customer_id: this.#customer.customerId,
      admin_token: this.#adminToken,
      root_key: daemon.rootKeyPath,
      pids: { worker, enclave, ...(standin === undefined ? {} : { standin }) },
    })
  }

  #withLog(name: PartName, text: string): string {
    const lines = lastLines(this.#parts.logFile(name), LOG_LINES_TOLD)
    return [`${name} ${text}`, ...lines.map((line) => `    ${line}`)].join('\n')
  }
}

function onPort(port: number): string {
  return `port ${port}`
}

function inWords(message: FromDaemon): string {
  const detail = 'reason' in message ? `: ${message.reason}` : ''
  return `${message.type.replaceAll('_', ' ')}${detail}`
}

function firstChatModel({ config }: RouterConfigFile): string {
  return config.routes.find((route) => route.type === 'chat' && !route.ocr)?.model_key ?? 'auto'
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
