import { setTimeout as delay } from 'node:timers/promises'
import type { DaemonTls, FromDaemon, TlsMaterial, ToDaemon } from '../../protocol/boot.ts'

/** A capture may wait a minute for the platform's firmware. */
const RESPONSE_TIMEOUT_MS = 90_000

/** Requests to the daemon that it answers with a message, one at a time. */
export class DaemonRpc {
  readonly #send: (message: ToDaemon) => void
  #queue: Promise<unknown> = Promise.resolve()
  #waiting: ((message: FromDaemon) => void) | undefined

  constructor(send: (message: ToDaemon) => void) {
    this.#send = send
  }

  /** To be called with every message from the daemon. */
  receive(message: FromDaemon): void {
    this.#waiting?.(message)
  }

  /** A new key with a self-signed certificate, not in use yet. */
  async prepareTls(domains: readonly string[]): Promise<DaemonTls> {
    const answer = await this.#call({ type: 'prepare_tls', domains: [...domains] }, [
      'tls_prepared',
    ])
    if (answer.type !== 'tls_prepared') throw new Error(answer.type)
    return answer.tls
  }

  /**
   * Binds this key, or a new one, in the attestation envelope. Resolves once that envelope is in use.
   * @throws Error when the daemon refuses, with its reason; nothing has changed then
   */
  async renewTls(tls?: TlsMaterial): Promise<DaemonTls> {
    const given = tls === undefined ? {} : { tls: { certPem: tls.certPem, keyPem: tls.keyPem } }
    const answer = await this.#call({ type: 'renew_tls', ...given }, ['tls_renewed', 'tls_refused'])
    if (answer.type === 'tls_renewed') return answer.tls
    throw new Error(answer.type === 'tls_refused' ? answer.reason : answer.type)
  }

  /**
   * Sends a reload and returns why it was refused, or null when it took effect.
   * @throws Error when the daemon does not answer
   */
  async reloaded(send: () => void): Promise<string | null> {
    const answer = await this.#await(send, ['reloaded', 'reload_unchanged', 'reload_refused'])
    return answer.type === 'reload_refused' ? answer.reason : null
  }

  #call(question: ToDaemon, answers: readonly FromDaemon['type'][]): Promise<FromDaemon> {
    return this.#await(() => this.#send(question), answers)
  }

  /** Runs requests one after another. */
  #await(send: () => void, answers: readonly FromDaemon['type'][]): Promise<FromDaemon> {
    const result = this.#queue.then(() => this.#awaitNow(send, answers))
    this.#queue = result.catch(() => {})
    return result
  }

  async #awaitNow(send: () => void, answers: readonly FromDaemon['type'][]): Promise<FromDaemon> {
    const { promise, resolve } = Promise.withResolvers<FromDaemon>()
    this.#waiting = (message) => {
      if (answers.includes(message.type)) resolve(message)
    }
    const timer = new AbortController()
    try {
      send()
      return await Promise.race([promise, timedOut(timer.signal)])
    } finally {
      this.#waiting = undefined
      timer.abort()
    }
  }
}

async function timedOut(signal: AbortSignal): Promise<never> {
  await delay(RESPONSE_TIMEOUT_MS, undefined, { signal })
  throw new Error(`the enclave daemon did not answer within ${RESPONSE_TIMEOUT_MS / 1000} s`)
}
