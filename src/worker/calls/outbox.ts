import type { LinkMessage } from '../../protocol/link-messages.ts'

/** What was to be done this long ago is late, ms. */
export const LATE_MS = 250

/** What waits to be sent by the request that owns a connection, and how late that request is. */
export class Outbox {
  readonly #now: () => number
  #messages: LinkMessage[] = []
  /** Since when its request has something to do: at first to open the connection, then to send. */
  #dueSince: number
  /** When it was first seen that this took long. */
  #lateSince: number | undefined

  /** @param now ms */
  constructor(now: () => number) {
    this.#now = now
    this.#dueSince = now()
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  /** Whether the message is the first one, so that its request has something to do from now on. */
  push(message: LinkMessage): boolean {
    if (this.#messages.push(message) > 1) return false
    this.#dueSince = this.#now()
    this.#lateSince = undefined
    return true
  }

  /** Everything, in order, which is not here any more. */
  takeAll(): LinkMessage[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }

  /** Puts another message into the place of the one of that call; whether there was one. */
  replace(id: number, other: LinkMessage): boolean {
    const place = this.#messages.findIndex((message) => message.id === id)
    if (place >= 0) this.#messages[place] = other
    return place >= 0
  }

  /** The calls that something is to be sent for. */
  ids(): number[] {
    return this.#messages.map(({ id }) => id)
  }

  /**
   * How long it has been seen that its request is late, ms; undefined while it is not. That is counted from when it was first seen:
   * after a pause of the machine the request may not have had its turn yet.
   */
  seenLateMs(): number | undefined {
    const now = this.#now()
    if (Math.abs(now - this.#dueSince) < LATE_MS) return undefined
    this.#lateSince ??= now
    return Math.abs(now - this.#lateSince)
  }
}
