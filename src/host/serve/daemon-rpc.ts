import type { DaemonTls, FromDaemon, TlsMaterial, ToDaemon } from '../../protocol/boot.ts'

const RESPONSE_TIMEOUT_MS = 90_000

/**
 * A reload or a new key may wait for several captures of up to a minute each. The request is not abandoned earlier,
 * because the daemon would still adopt the change; a daemon that is frozen is killed long before this limit.
 */
const ADOPTION_TIMEOUT_MS = 600_000

/** How to recognise the answer to a request. */
interface Expected {
  readonly answers: readonly FromDaemon['type'][]
  /** An id that the answer must repeat. */
  readonly id?: number
  readonly limitMs: number
}

interface Waiting {
  readonly hear: (message: FromDaemon) => void
  readonly fail: (reason: Error) => void
}

/** Sends requests to the daemon that it answers with a message, one at a time. */
export class DaemonRpc {
  readonly #send: (message: ToDaemon) => void
  #queue: Promise<unknown> = Promise.resolve()
  #waiting: Waiting | undefined
  #reloads = 0

  /** @param send throws when no daemon is running */
  constructor(send: (message: ToDaemon) => void) {
    this.#send = send
  }

  /** Must be called with every message from the daemon. */
  receive(message: FromDaemon): void {
    this.#waiting?.hear(message)
  }

  /** Must be called when the daemon's process has ended: it will not answer the pending request. */
  ended(): void {
    this.#waiting?.fail(new Error('the enclave daemon ended before it answered: try again'))
  }

  /** Makes a new key with a self-signed certificate, not in use yet. */
  async prepareTls(domains: readonly string[]): Promise<DaemonTls> {
    const answer = await this.#call(
      { type: 'prepare_tls', domains: [...domains] },
      { answers: ['tls_prepared'], limitMs: RESPONSE_TIMEOUT_MS },
    )
    if (answer.type !== 'tls_prepared') throw new Error(answer.type)
    return answer.tls
  }

  /**
   * Binds this key, or a new one, in the attestation envelope. Resolves once that envelope is in use.
   * @throws Error when the daemon refuses, with its reason; nothing has changed then
   */
  async renewTls(tls?: TlsMaterial): Promise<DaemonTls> {
    const given = tls === undefined ? {} : { tls: { certPem: tls.certPem, keyPem: tls.keyPem } }
    const answer = await this.#call(
      { type: 'renew_tls', ...given },
      { answers: ['tls_renewed', 'tls_refused'], limitMs: ADOPTION_TIMEOUT_MS },
    )
    if (answer.type === 'tls_renewed') return answer.tls
    throw new Error(answer.type === 'tls_refused' ? answer.reason : answer.type)
  }

  /**
   * Sends a reload by calling `send` with a new id.
   * @returns why it was refused, or null when it took effect
   * @throws Error when the daemon does not answer, or ends before that
   */
  async reloaded(send: (id: number) => void): Promise<string | null> {
    this.#reloads += 1
    const id = this.#reloads
    const answer = await this.#await(() => send(id), {
      answers: ['reloaded', 'reload_unchanged', 'reload_refused'],
      id,
      limitMs: ADOPTION_TIMEOUT_MS,
    })
    return answer.type === 'reload_refused' ? answer.reason : null
  }

  #call(question: ToDaemon, expected: Expected): Promise<FromDaemon> {
    return this.#await(() => this.#send(question), expected)
  }

  /** Runs requests one after another. */
  #await(send: () => void, expected: Expected): Promise<FromDaemon> {
    const result = this.#queue.then(() => this.#awaitNow(send, expected))
    this.#queue = result.catch(() => {})
    return result
  }

  async #awaitNow(send: () => void, { answers, id, limitMs }: Expected): Promise<FromDaemon> {
    const { promise, resolve, reject } = Promise.withResolvers<FromDaemon>()
    this.#waiting = {
      hear(message) {
        const isAnswer = id === undefined || ('id' in message && message.id === id)
        if (isAnswer && answers.includes(message.type)) resolve(message)
      },
      fail: reject,
    }
    const late = new Error(`the enclave daemon did not answer within ${limitMs / 1000} s`)
    const timer = setTimeout(() => reject(late), limitMs)
    try {
      send()
      return await promise
    } finally {
      this.#waiting = undefined
      clearTimeout(timer)
    }
  }
}
