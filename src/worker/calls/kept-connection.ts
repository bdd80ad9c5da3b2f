import type { BatchDeps } from '../batching/batcher.ts'
import { MessageConnection, type SmallCall } from './message-connection.ts'
import { REOPEN_MS, upgrade, type UpgradeTarget } from './upgrade.ts'

/** The single message connection to another process. It is opened when it is first needed, and again after it has ended. */
export class KeptConnection {
  readonly #target: UpgradeTarget
  readonly #host: BatchDeps
  readonly #ended: (calls: number) => void
  #connection: MessageConnection | undefined
  #openedAt = Number.NEGATIVE_INFINITY

  /** @param ended called when an open connection has ended, with the number of its open calls */
  constructor(target: UpgradeTarget, host: BatchDeps, ended: (calls: number) => void) {
    this.#target = target
    this.#host = host
    this.#ended = ended
  }

  /**
   * The connection, if it can take this call of the current request now. If there is none, one is opened for later calls.
   */
  forCall(call: SmallCall): MessageConnection | undefined {
    const connection = this.#connection
    if (connection === undefined || connection.state === 'ended') this.#open()
    return connection?.takes(call) === true ? connection : undefined
  }

  #open(): void {
    const now = this.#host.now()
    if (Math.abs(now - this.#openedAt) < REOPEN_MS) return
    this.#openedAt = now
    this.#connection = new MessageConnection(this.#host, this.#ended)
    this.#host.keepAlive(this.#connection.run(() => upgrade(this.#target, this.#host.now)))
  }
}
