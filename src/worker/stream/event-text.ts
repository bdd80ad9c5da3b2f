/** Server-sent events that one step of an encoder adds up, until it takes them all. */
export class EventText {
  #text = ''

  /** Adds a named event, whose type its data repeats. */
  add(type: string, members: object): void {
    this.#text += `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
  }

  /** The text of all events since the last call. */
  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }
}
