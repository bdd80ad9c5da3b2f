import { lastLines } from './child.ts'
import {
  createProcessRestarter,
  type ProcessRestarter,
  type RestartPolicy,
  type Started,
} from './process-restarter.ts'
import type { Parts } from './parts.ts'
import { StartError } from './start-error.ts'
import type { WorkerPorts } from './start-worker.ts'
import { workerNames, type WorkerName } from './worker-name.ts'
import { messageOfThrown } from '../../protocol/thrown-message.ts'

export type PartName = 'standin' | 'enclave' | 'ledger' | WorkerName

export interface SupervisorPlan {
  readonly parts: Parts
  /** Whether the stand-in provider is one of the parts. */
  readonly standin: boolean
  readonly workers: number
  readonly policy: RestartPolicy
  /** Prints one line. */
  readonly log: (text: string) => void
  /** Called each time a part becomes ready. */
  readonly changed: () => void
}

const LOG_LINES_SHOWN = 12

/** Keeps the parts of a stack running, from the first start to the end. */
export class Supervisor {
  readonly #plan: SupervisorPlan
  readonly #standin: ProcessRestarter
  readonly #enclave: ProcessRestarter
  readonly #ledger: ProcessRestarter
  readonly #workers: ReadonlyMap<WorkerName, ProcessRestarter>
  readonly #pids = new Map<PartName, number>()
  readonly #probes = new Map<WorkerName, number>()
  readonly #failure = Promise.withResolvers<never>()

  constructor(plan: SupervisorPlan) {
    const { parts } = plan
    this.#plan = plan
    this.#standin = this.#keep('standin', () => parts.standin(), onPort)
    this.#enclave = this.#keep(
      'enclave',
      () => parts.enclave(),
      ({ linkPort }) => onPort(linkPort),
    )
    this.#ledger = this.#keep('ledger', () => parts.ledger(), onPort)
    this.#workers = new Map(
      workerNames(plan.workers).map((name) => [name, this.#keepWorker(name)] as const),
    )
    this.failed.catch(() => {})
  }

  /** Never resolves; rejects with a StartError when a part crashed too often. */
  get failed(): Promise<never> {
    return this.#failure.promise
  }

  /** The last process of each part. */
  get pids(): ReadonlyMap<PartName, number> {
    return this.#pids
  }

  /** The port on which each worker answers only the supervisor, where it has one. */
  get probes(): ReadonlyMap<WorkerName, number> {
    return this.#probes
  }

  /**
   * Starts every part, in the order of their dependencies.
   * @throws StartError when a part does not become ready; the message includes the end of its log
   */
  async start(): Promise<void> {
    await this.startEnclave()
    await this.startWorkers()
  }

  /**
   * Starts the stand-in, then the daemon.
   * @throws StartError when one does not become ready; the message includes the end of its log
   */
  async startEnclave(): Promise<void> {
    if (this.#plan.standin) await this.#start('standin', this.#standin)
    await this.#start('enclave', this.#enclave)
  }

  /**
   * Starts the ledger process, where the storage engine has one, then the workers; the daemon must be running.
   * @throws StartError when the ledger cannot be used, or when one does not become ready; the message includes the end
   *   of its log
   */
  async startWorkers(): Promise<void> {
    this.#plan.parts.checkLedger()
    if (this.#plan.parts.hasLedger) await this.#start('ledger', this.#ledger)
    await Promise.all([...this.#workers].map(([name, restarter]) => this.#start(name, restarter)))
  }

  /**
   * Replaces the workers one after another; each ends its requests.
   * @param together whether old and new may run at the same time
   */
  async replaceWorkers(graceMs: number, together: boolean): Promise<void> {
    for (const [name, restarter] of this.#workers) {
      await restarter.replace(graceMs, together, () => this.#plan.parts.holdConnections(name))
    }
  }

  /** Whether a part is up, and has neither ended nor is being replaced: only then must it answer. */
  isUp(name: PartName): boolean {
    const others = { standin: this.#standin, enclave: this.#enclave, ledger: this.#ledger }
    const isOther = name === 'standin' || name === 'enclave' || name === 'ledger'
    return (isOther ? others[name] : this.#workers.get(name))?.isUp() ?? false
  }

  /** Kills a worker that no longer answers; it is restarted. */
  killWorker(name: WorkerName): void {
    this.#workers.get(name)?.kill()
  }

  /** As `killWorker`. */
  killEnclave(): void {
    this.#enclave.kill()
  }

  /** As `killWorker`. */
  killLedger(): void {
    this.#ledger.kill()
  }

  /** Stops every part: the workers first, so that they can end their requests with the help of the others. */
  async stop(workerGraceMs: number, othersGraceMs: number): Promise<void> {
    await Promise.all([...this.#workers.values()].map((restarter) => restarter.stop(workerGraceMs)))
    const others = [this.#enclave, this.#ledger, this.#standin]
    await Promise.all(others.map((restarter) => restarter.stop(othersGraceMs)))
  }

  #keepWorker(name: WorkerName): ProcessRestarter {
    const start = async (): Promise<Started<WorkerPorts>> => {
      const started = await this.#plan.parts.worker(name)
      const { probe } = started.ready
      if (probe !== undefined) this.#probes.set(name, probe)
      return started
    }
    return this.#keep(name, start, (ports) => onPort(ports.http))
  }

  #keep<Ready>(
    name: PartName,
    start: () => Promise<Started<Ready>>,
    where: (ready: Ready) => string,
  ): ProcessRestarter {
    const { policy, log, changed } = this.#plan
    const print = (text: string) => log(`  ${name.padEnd(8)} ${text}`)
    const events = {
      up: (ready: Ready, pid: number) => {
        this.#pids.set(name, pid)
        print(`up: ${where(ready)}, pid ${pid}`)
        changed()
      },
      died: (why: string, restartMs: number) =>
        print(`died: ${why}; back in ${restartMs / 1000} s`),
      gaveUp: (why: string, times: number) => {
        const text = this.#withLog(name, `died ${times} times within a minute, at last: ${why}`)
        this.#failure.reject(new StartError(text))
      },
    }
    return createProcessRestarter(start, Date.now, events, policy)
  }

  async #start(name: PartName, restarter: ProcessRestarter): Promise<void> {
    try {
      await restarter.start()
    } catch (error) {
      // A StartError is a complete reason; the log, which may be that of an earlier start, would add nothing.
      if (error instanceof StartError) throw error
      const why = messageOfThrown(error)
      throw new StartError(this.#withLog(name, why), { cause: error })
    }
  }

  #withLog(name: PartName, text: string): string {
    const lines = lastLines(this.#plan.parts.logFile(name), LOG_LINES_SHOWN)
    return [`${name} ${text}`, ...lines.map((line) => `    ${line}`)].join('\n')
  }
}

function onPort(port: number): string {
  return `port ${port}`
}
