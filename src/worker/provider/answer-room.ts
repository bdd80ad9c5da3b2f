import { ApiError } from '../http/errors.ts'

/**
 * Maximum size of an answer, bytes: far above any ordinary answer. Parsing a larger one would block all requests of the
 * thread.
 */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** Memory for an ordinary answer, and the step in which more is reserved, bytes. */
const STEP_BYTES = 64 * 1024

/**
 * The memory for the whole answer of one request, taken from the customer's share of memory for request and answer bodies.
 * The request's attempts use it one after the other. The memory for an ordinary answer is reserved before a provider is
 * called, so that a refusal costs nobody anything; an answer that a provider has produced is billed whether or not there is
 * room for it.
 */
export class AnswerRoom {
  readonly #takeMemory: (bytes: number) => void
  #taken = 0
  #come: number | undefined

  /**
   * @param takeMemory reserves bytes, or throws
   * @throws ApiError the error of `takeMemory` when there is no memory for an ordinary answer
   */
  constructor(takeMemory: (bytes: number) => void) {
    this.#takeMemory = takeMemory
    this.#grow(STEP_BYTES)
  }

  /** Number of bytes known to be in the latest attempt's answer; undefined until its provider has begun to answer. */
  get come(): number | undefined {
    return this.#come
  }

  /** To be called before another provider is called: none of its answer has arrived. */
  empty(): void {
    this.#come = undefined
  }

  /**
   * Makes room for an answer of this many bytes in all.
   * @param declared whether `bytes` is the final length
   * @throws ApiError `answer_too_long`, or the error of `takeMemory`: limits of the router, not failures of the provider
   */
  hold(bytes: number, declared: boolean): void {
    this.#come = bytes
    if (bytes > MAX_ANSWER_BYTES) throw tooLong('is larger than 16 MiB')
    if (bytes <= this.#taken) return
    this.#grow(declared ? bytes - this.#taken : Math.max(STEP_BYTES, bytes - this.#taken))
  }

  #grow(bytes: number): void {
    this.#takeMemory(bytes)
    this.#taken += bytes
  }
}

/** The error for an answer that its provider has produced but that exceeds the router's limits for whole answers. */
export function tooLong(what: string): ApiError {
  const message = `The answer ${what}, which the router does not take in one piece. Its provider has made it, so it is billed.`
  return new ApiError('answer_too_long', message)
}
