import type { EventEmitter } from 'node:events'

type Stream = Pick<EventEmitter, 'on'>

/**
 * Watches whether a command's output is written. Without this, Node ends with a stack trace when the reader closes the
 * pipe, and ignores a failed write of `console.log`, as on a full disk.
 */
export class Output {
  #fault: Error | undefined

  constructor(out: Stream, errors: Stream) {
    out.on('error', (error: Error) => (this.#fault ??= error))
    // If standard error fails, there is nowhere left to report it.
    errors.on('error', () => {})
  }

  /**
   * Why output was lost; undefined when it was not, or when the reader closed the pipe because it needed no more, as
   * `head` does.
   */
  async fault(): Promise<Error | undefined> {
    // Streams emit `error` after the call to `write` has returned.
    await new Promise((resolve) => setImmediate(resolve))
    const fault = this.#fault
    return fault !== undefined && 'code' in fault && fault.code === 'EPIPE' ? undefined : fault
  }
}
