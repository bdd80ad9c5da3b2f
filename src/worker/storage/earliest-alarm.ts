/** The single alarm of a Durable Object, set to the earliest time that was asked for. */
export class EarliestAlarm {
  readonly #set: (time: number) => Promise<void>
  /** The earliest time that was asked for since the alarm last went off, ms since the epoch; infinity for none. */
  #at = Number.POSITIVE_INFINITY
  /** False after an attempt to set the alarm to `#at` has failed. */
  #isSet = true

  /** @param set sets the object's alarm to a time, ms since the epoch; replaces an earlier setting */
  constructor(set: (time: number) => Promise<void>) {
    this.#set = set
  }

  /** Records what the object's alarm is set to, ms since the epoch; null: nothing. */
  isAlready(time: number | null): void {
    this.#at = time ?? Number.POSITIVE_INFINITY
  }

  /**
   * Like `isAlready`, and sets an alarm that is set already to another time: workerd has the alarms in a file of its own, and
   * where that was lost, the object still knows its alarm, which only another time makes go off. Never rejects.
   * @param again the other time, ms since the epoch; undefined: the alarm stays
   */
  async resume(time: number | null, again: number | undefined): Promise<void> {
    if (time === null || again === undefined) this.isAlready(time)
    else await this.scheduleAfterWrite(again)
  }

  /** To be called when the alarm goes off. */
  wentOff(): void {
    this.#at = Number.POSITIVE_INFINITY
  }

  /**
   * Makes sure that the alarm goes off at this time (ms since the epoch) or earlier.
   * @throws what `set` throws; the next call tries again
   */
  async schedule(time: number): Promise<void> {
    if (this.#isSet && this.#at <= time) return
    this.#at = Math.min(this.#at, time)
    // Set before the await, so that a concurrent call with a later time does not overwrite the alarm.
    this.#isSet = true
    try {
      await this.#set(this.#at)
    } catch (error) {
      this.#isSet = false
      throw error
    }
  }

  /**
   * Like `schedule`, but never rejects: a write is answered as done even if the alarm cannot be set. The next call tries
   * again.
   */
  async scheduleAfterWrite(time: number): Promise<void> {
    await this.schedule(time).catch(() => {})
  }
}
