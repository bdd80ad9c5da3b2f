import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { Permit } from '../limits/request-cap.ts'

/** Maximum size of an answer that is kept for repeats, before compression, bytes. */
export const MAX_RECORDED_BYTES = 8 * 1024 * 1024

/** The step in which memory is reserved, bytes. */
const STEP_BYTES = 64 * 1024

/** Records the bytes of a streamed answer for repeats, as long as there is memory for them. */
export class AnswerRecorder {
  readonly #takeMemory: Permit['takeMemory']
  #parts: Bytes[] = []
  #bytes = 0
  #taken = 0
  #full = false

  /** @param takeMemory throws when no memory is left */
  constructor(takeMemory: Permit['takeMemory']) {
    this.#takeMemory = takeMemory
  }

  /** Whether everything so far was recorded. */
  get complete(): boolean {
    return !this.#full
  }

  add(part: Uint8Array): void {
    if (this.#full) return
    this.#bytes += part.length
    if (this.#bytes > MAX_RECORDED_BYTES || !this.#makeRoom()) {
      this.#full = true
      this.#parts = []
      return
    }
    this.#parts.push(new Uint8Array(part))
  }

  /** Everything added plus `last`; undefined where it was too large. */
  whole(last: Bytes): Bytes | undefined {
    return this.#full ? undefined : concatBytes(...this.#parts, last)
  }

  #makeRoom(): boolean {
    try {
      while (this.#taken < this.#bytes) {
        this.#takeMemory(STEP_BYTES, 'request goes on')
        this.#taken += STEP_BYTES
      }
      return true
    } catch {
      return false
    }
  }
}
