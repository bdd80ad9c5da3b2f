import { concatBytes, type Bytes } from '../../protocol/bytes.ts'

/** The longest answer that is kept for repeats, before it is compressed, bytes. */
export const MAX_RECORDED_BYTES = 8 * 1024 * 1024

/** Memory is asked for in pieces of this size, bytes. */
const STEP_BYTES = 64 * 1024

/** Gathers the bytes of a streamed answer for those who ask for it again, as far as there is memory for them. */
export class AnswerRecorder {
  readonly #takeMemory: (bytes: number) => void
  #parts: Bytes[] = []
  #bytes = 0
  #taken = 0
  #full = false

  /** @param takeMemory throws where there is none */
  constructor(takeMemory: (bytes: number) => void) {
    this.#takeMemory = takeMemory
  }

  /** Whether everything so far was gathered. */
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

  /** All that was added and `last`; undefined where it was too much. */
  whole(last: Bytes): Bytes | undefined {
    return this.#full ? undefined : concatBytes(...this.#parts, last)
  }

  #makeRoom(): boolean {
    try {
      while (this.#taken < this.#bytes) {
        this.#takeMemory(STEP_BYTES)
        this.#taken += STEP_BYTES
      }
      return true
    } catch {
      return false
    }
  }
}
