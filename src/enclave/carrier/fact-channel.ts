import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { applied, changesOf, NO_FACTS, type FactChanges, type Facts } from './facts.ts'

/** The receiving end of a channel of facts, which a thread is started with. */
export interface FactFeed {
  readonly port: MessagePort
  /** In shared memory: how many messages were sent. */
  readonly sent: Int32Array
}

/**
 * Sends the facts to another thread. Once `tell` has returned, the other thread uses nothing older, although no
 * acknowledgement is awaited: before it reads a fact, it reads all messages that were sent.
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

/** The facts that another thread sends, never older than what it has sent so far. */
export class FactMirror {
  readonly #feed: FactFeed
  #facts: Facts = NO_FACTS
  #received = 0

  constructor(feed: FactFeed) {
    this.#feed = feed
    // Needed while nothing reads facts: messages would pile up in the port.
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
