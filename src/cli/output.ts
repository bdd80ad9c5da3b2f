import type { EventEmitter } from 'node:events'

type Stream = Pick<EventEmitter, 'on'>

/**
 * What becomes of what a command prints. Node ends with a stack trace where nobody reads on, and takes no notice where
 * `console.log` cannot write, as on a full disk.
 */
export class Output {
  #fault: Error | undefined

  constructor(out: Stream, errors: Stream) {
    out.on('error', (error: Error) => (this.#fault ??= error))
    // There is nowhere left to tell it.
    errors.on('error', () => {})
  }

  /** Why what was printed is lost; undefined where it is not, or where its reader wanted no more of it, as `head` does. */
  async fault(): Promise<Error | undefined> {
    // Streams tell their faults after the call that wrote.
    await new Promise((resolve) => setImmediate(resolve))
    const fault = this.#fault
    return fault !== undefined && 'code' in fault && fault.code === 'EPIPE' ? undefined : fault
  }
}
