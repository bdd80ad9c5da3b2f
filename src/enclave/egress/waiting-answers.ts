import { LinkError } from '../link-error.ts'
import type { Begun } from './gather.ts'
import { HeldAnswer } from './held-answer.ts'
import type { OpenConnection } from './open-connection.ts'
import type { ProviderAnswer } from './provider-answer.ts'

/** A worker fetches a waiting answer at once, or never, ms. */
const WAIT_MS = 10_000

interface Waiting {
  readonly answer: HeldAnswer
  readonly open: OpenConnection
}

/** Answers to calls that came as messages, until the worker fetches them over HTTP. Nothing more of them is read meanwhile. */
export class WaitingAnswers {
  readonly #thread: string
  #count = 0
  readonly #waiting = new Map<string, Waiting & { readonly timer: NodeJS.Timeout }>()

  /** @param thread the id of this thread, so that no other one has an answer of the same id */
  constructor(thread: string) {
    this.#thread = thread
  }

  /**
   * Keeps an answer; returns the id that it is fetched by.
   * @param begun what was reported of it already
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

  /** Gives all of them up. */
  close(): void {
    for (const id of this.#waiting.keys()) this.#giveUp(id)
  }

  #giveUp(id: string): void {
    this.take(id).answer.destroy()
  }
}
