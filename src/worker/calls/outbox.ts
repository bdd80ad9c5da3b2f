import type { LinkMessage } from '../../protocol/link-messages.ts'

/** A request that has not done its pending work after this time is late, ms. */
export const LATE_MS = 250

/** The messages that the owning request has yet to send, and how late that request is. */
export class Outbox {
  readonly #now: () => number
  #messages: LinkMessage[] = []
  /** Since when the owning request has pending work (first to open the connection, then to send), ms since the epoch. */
  #dueSince: number
  /** When the lateness was first noticed, ms since the epoch. */
  #lateSince: number | undefined

  /** @param now ms since the epoch */
  constructor(now: () => number) {
    this.#now = now
    this.#dueSince = now()
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  /**
   * Adds a message.
   * @returns whether it is the only one, so that the owning request has pending work from now on
   */
  push(message: LinkMessage): boolean {
    if (this.#messages.push(message) > 1) return false
    this.#dueSince = this.#now()
    this.#lateSince = undefined
    return true
  }

  /** Removes and returns all messages, in order. */
  takeAll(): LinkMessage[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }

  /**
   * Replaces the message of a call.
   * @returns whether there was one
   */
  replace(id: number, other: LinkMessage): boolean {
    const place = this.#messages.findIndex((message) => message.id === id)
    if (place >= 0) this.#messages[place] = other
    return place >= 0
  }

  /** The ids of the calls that have a message here. */
  ids(): number[] {
    return this.#messages.map(({ id }) => id)
  }

  /**
   * For how long the owning request has been seen to be late, ms; undefined while it is not late. The time counts from the
   * first observation: after a pause of the machine, the request may not have had its turn yet.
   */
  seenLateMs(): number | undefined {
    const now = this.#now()
    if (Math.abs(now - this.#dueSince) < LATE_MS) return undefined
    this.#lateSince ??= now
    return Math.abs(now - this.#lateSince)
  }
}
