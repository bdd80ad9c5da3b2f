import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { applied, changesOf, NO_FACTS, type FactChanges, type Facts } from './facts.ts'

/** The end of a channel of facts that a thread is started with. */
export interface FactFeed {
  readonly port: MessagePort
  /** Over shared memory: how many messages were sent. */
  readonly sent: Int32Array
}

/**
 * Tells another thread the facts. When `tell` has returned, the other thread goes by nothing older, although it did not
 * answer: it reads all messages that were sent before it reads a fact.
 */
export class FactTeller {
  readonly #feed: FactFeed
  #told: Facts = NO_FACTS

  constructor(feed: FactFeed) {
    this.#feed = feed
  }

  tell(facts: Facts): void {
    const changes = changesOf(this.#told, facts)
    if (changes === undefined) return
    this.#told = facts
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port has no origin
    this.#feed.port.postMessage(changes)
    Atomics.add(this.#feed.sent, 0, 1)
  }

  close(): void {
    this.#feed.port.close()
  }
}

/** The facts of another thread, never older than what it has sent by now. */
export class FactMirror {
  readonly #feed: FactFeed
  #facts: Facts = NO_FACTS
  #received = 0

  constructor(feed: FactFeed) {
    this.#feed = feed
    // Also while nothing asks for facts: messages would pile up.
    feed.port.on('message', (changes: FactChanges) => this.#apply(changes))
  }

  get facts(): Facts {
    if (Atomics.load(this.#feed.sent, 0) !== this.#received) this.#catchUp()
    return this.#facts
  }

  #catchUp(): void {
    for (;;) {
      const next: { message: FactChanges } | undefined = receiveMessageOnPort(this.#feed.port)
      if (next === undefined) return
      this.#apply(next.message)
    }
  }

  #apply(changes: FactChanges): void {
    this.#facts = applied(this.#facts, changes)
    this.#received += 1
  }
}
