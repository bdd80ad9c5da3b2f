import { ApiError } from '../http/errors.ts'

/** Far above any ordinary answer. Parsing a larger one would block all requests of the thread. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** What an ordinary answer needs, and the step in which more is reserved, bytes. */
const STEP_BYTES = 64 * 1024

/**
 * The memory for the whole answer of one request, from the share for request and answer bodies. Its attempts use it one after the
 * other. What an ordinary answer needs is taken before a provider is asked, so that a refusal costs nobody anything; what a
 * provider has made is paid for, whether or not there is room for it.
 */
export class AnswerRoom {
  readonly #takeMemory: (bytes: number) => void
  #taken = 0
  #come: number | undefined

  /** @throws ApiError the error of `takeMemory` when there is no memory for an ordinary answer */
  constructor(takeMemory: (bytes: number) => void) {
    this.#takeMemory = takeMemory
    this.#grow(STEP_BYTES)
  }

  /** Bytes that are known of the answer of the latest attempt; undefined until its provider has begun to answer. */
  get come(): number | undefined {
    return this.#come
  }

  /** Another provider is asked: nothing of its answer has come. */
  empty(): void {
    this.#come = undefined
  }

  /**
   * Room for an answer of so many bytes. `declared`: it will not be more.
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

/** The error for an answer that the router does not take whole, although its provider has made it. */
export function tooLong(what: string): ApiError {
  const message = `The answer ${what}, which the router does not take in one piece. Its provider has made it, so it is billed.`
  return new ApiError('answer_too_long', message)
}
