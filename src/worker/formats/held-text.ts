import { BrokenStream } from '../stream/broken-stream.ts'
import type { TakeMemory } from '../stream/event-framer.ts'
import type { Logprobs } from '../stream/logprobs.ts'

/** Bytes that the text of one answer may hold before it reserves memory. Nearly all answers are smaller. */
const UNASKED_BYTES = 64 * 1024

/**
 * Maximum memory for the text, items and log probabilities of one answer, bytes, however much is free: its last events
 * repeat them several times, and one provider must not use up the memory that all streams share.
 */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * The longest text of one answer that is held, characters: several times what the largest models write. The last events
 * repeat it synchronously, which blocks the event loop for about a second at this length.
 */
const MAX_TEXT_CHARACTERS = 8 * 1024 * 1024

/** Memory is reserved in steps of at least this size, bytes. */
const STEP_BYTES = 64 * 1024

/** Memory overhead of a piece besides its characters, bytes. */
const PIECE_BYTES = 48

/** Counts the text that is held until the end of its answer, and reserves memory for it. */
export class HeldText {
  readonly #takeMemory: TakeMemory | undefined
  #characters = 0
  #held = 0
  #allowed = UNASKED_BYTES

  /** @param takeMemory reserves memory that all streams share; if undefined, only the limits of one answer apply */
  constructor(takeMemory: TakeMemory | undefined) {
    this.#takeMemory = takeMemory
  }

  /** Adds a piece with its log probabilities; see `add`. */
  addPiece(text: string, logprobs: Logprobs | null): void {
    this.add(text.length, logprobsSize(logprobs))
  }

  /**
   * Adds a piece.
   * @param characters its length
   * @param besides size of what is held with it, bytes
   * @throws BrokenStream `text_too_long` when the text is too long, `no_memory` when no memory is left for it
   */
  add(characters: number, besides = 0): void {
    this.#characters += characters
    if (this.#characters > MAX_TEXT_CHARACTERS) throw new BrokenStream('text_too_long')
    this.#held += characters + besides + PIECE_BYTES
    if (this.#held <= this.#allowed) return
    const bytes = Math.max(STEP_BYTES, this.#held - this.#allowed)
    if (this.#held > MAX_BYTES) throw new BrokenStream('no_memory')
    try {
      this.#takeMemory?.(bytes)
    } catch {
      throw new BrokenStream('no_memory')
    }
    this.#allowed += bytes
  }
}

/** Approximate memory for a token or one of its alternatives, bytes. */
const LOGPROB_BYTES = 128

function logprobsSize(logprobs: Logprobs | null): number {
  const tokens = logprobs?.content ?? []
  return tokens.reduce((sum, token) => sum + LOGPROB_BYTES * (1 + token.top_logprobs.length), 0)
}
