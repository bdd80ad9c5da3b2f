import { BrokenStream } from '../stream/broken-stream.ts'
import type { TakeMemory } from '../stream/event-framer.ts'
import type { Logprobs } from '../stream/logprobs.ts'

/** What the text of one answer may hold without asking for memory, bytes. Nearly all answers are smaller. */
const UNASKED_BYTES = 64 * 1024

/**
 * The most that the text of one answer, its items and log probabilities may take, bytes, whatever memory is left: its last events
 * repeat them several times, and one provider must not take what all streams share.
 */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * The longest text of one answer that is held, characters: several times what the largest models write at most. The last
 * events repeat it in one go, which takes about a second for so much, and nothing else of the thread runs meanwhile.
 */
const MAX_TEXT_CHARACTERS = 8 * 1024 * 1024

/** How much is asked for at a time, bytes. */
const STEP_BYTES = 64 * 1024

/** What a piece takes besides its characters, bytes. */
const PIECE_BYTES = 48

/** Counts the text that is held until the end of its answer, and takes memory for it. */
export class HeldText {
  readonly #takeMemory: TakeMemory | undefined
  #characters = 0
  #held = 0
  #allowed = UNASKED_BYTES

  /** Without `takeMemory` it counts towards nothing that streams share. */
  constructor(takeMemory: TakeMemory | undefined) {
    this.#takeMemory = takeMemory
  }

  /** As `add`, for a piece with its log probabilities. */
  addPiece(text: string, logprobs: Logprobs | null): void {
    this.add(text.length, logprobsSize(logprobs))
  }

  /**
   * Adds a piece of so many characters.
   * @param besides what is held with it, bytes
   * @throws BrokenStream `text_too_long` when the text is, `no_memory` when there is none for it
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

/** About what a token and one of its alternatives take, bytes. */
const LOGPROB_BYTES = 128

function logprobsSize(logprobs: Logprobs | null): number {
  const tokens = logprobs?.content ?? []
  return tokens.reduce((sum, token) => sum + LOGPROB_BYTES * (1 + token.top_logprobs.length), 0)
}
