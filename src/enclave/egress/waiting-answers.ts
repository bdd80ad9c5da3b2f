import { LinkError } from '../link-error.ts'
import type { Begun } from './gather.ts'
import { HeldAnswer } from './held-answer.ts'
import type { OpenConnection } from './open-connection.ts'
import type { ProviderAnswer } from './provider-answer.ts'

/** How long an answer waits, ms: a worker fetches it at once, or never. */
const WAIT_MS = 10_000

interface Waiting {
  readonly answer: HeldAnswer
  readonly open: OpenConnection
}

/**
 * Answers to calls that came as messages, kept until the worker fetches them over HTTP. They are not read any further
 * until then.
 */
export class WaitingAnswers {
  readonly #thread: string
  #count = 0
  readonly #waiting = new Map<string, Waiting & { readonly timer: NodeJS.Timeout }>()

  /** @param thread the id of this thread; makes the ids of answers unique across threads */
  constructor(thread: string) {
    this.#thread = thread
  }

  /**
   * Keeps an answer.
   * @param begun the part of the answer that was already received
   * @returns the id by which the worker fetches it
   */
  keep(given: ProviderAnswer, open: OpenConnection, begun?: Begun): string {
    this.#count += 1
    const id = `${this.#thread}-${this.#count}`
    const answer = new HeldAnswer(given, begun)
    const timer = setTimeout(() => this.#giveUp(id), WAIT_MS)
    this.#waiting.set(id, { answer, open, timer })
    return id
  }

  /** @throws LinkError `not_found` when no answer of that id waits */
  take(id: string): Waiting {
    const found = this.#waiting.get(id)
    if (found === undefined) throw new LinkError('not_found', 'no such answer')
    this.#waiting.delete(id)
    clearTimeout(found.timer)
    return found
  }

  /** Aborts all of them. */
  close(): void {
    for (const id of this.#waiting.keys()) this.#giveUp(id)
  }

  #giveUp(id: string): void {
    this.take(id).answer.destroy()
  }
}
