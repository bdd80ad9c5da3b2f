/** The one alarm of a Durable Object: it is set to the earliest time that was asked for. */
export class EarliestAlarm {
  readonly #set: (time: number) => Promise<void>
  /** The earliest time that was asked for since it last went off; infinity for none. */
  #at = Number.POSITIVE_INFINITY
  /** Whether no attempt to set it to that time has failed. */
  #isSet = true

  /** @param set sets the object's alarm to a time, ms since the epoch, in place of an earlier setting */
  constructor(set: (time: number) => Promise<void>) {
    this.#set = set
  }

  /** Says what the object's alarm is set to; null: nothing. */
  isAlready(time: number | null): void {
    this.#at = time ?? Number.POSITIVE_INFINITY
  }

  /** To be called when it goes off. */
  wentOff(): void {
    this.#at = Number.POSITIVE_INFINITY
  }

  /**
   * Sees to it that the alarm goes off at this time at the latest.
   * @throws what `set` throws; the next call tries again
   */
  async schedule(time: number): Promise<void> {
    if (this.#isSet && this.#at <= time) return
    this.#at = Math.min(this.#at, time)
    // Already now, since a call that comes meanwhile with a later time must not set it to that.
    this.#isSet = true
    try {
      await this.#set(this.#at)
    } catch (error) {
      this.#isSet = false
      throw error
    }
  }

  /** The same after a write, which is answered as what it is where the alarm cannot be set: the next call tries again. */
  async scheduleAfterWrite(time: number): Promise<void> {
    await this.schedule(time).catch(() => {})
  }
}
