/** Maximum age of a cached result, ms. */
const MAX_AGE_MS = 250

/** After this time a check that has not ended counts as lost, ms. */
const CHECK_TIMEOUT_MS = 10_000

/** How often a request polls whether another request's check has ended, ms. */
const POLL_INTERVAL_MS = 25

export interface ReadinessDeps {
  /** Ms. */
  readonly now: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Throws when the router is not ready to serve. */
  readonly check: () => Promise<void>
}

/** Whether the router is ready. One check serves all callers that ask at about the same time. */
export class Readiness {
  readonly #deps: ReadinessDeps
  #known: { readonly at: number; readonly failure: unknown } | undefined
  #checkingSince: number | undefined

  constructor(deps: ReadinessDeps) {
    this.#deps = deps
  }

  /** @throws what the check throws */
  async confirm(): Promise<void> {
    const { now, pause } = this.#deps
    while (!within(now() - (this.#known?.at ?? Number.NEGATIVE_INFINITY), MAX_AGE_MS)) {
      const checking = now() - (this.#checkingSince ?? Number.NEGATIVE_INFINITY)
      // A request must not wait for work that belongs to another one.
      if (within(checking, CHECK_TIMEOUT_MS)) await pause(POLL_INTERVAL_MS)
      else return this.#check()
    }
    if (this.#known?.failure !== undefined) throw this.#known.failure
  }

  async #check(): Promise<void> {
    const { now, check } = this.#deps
    this.#checkingSince = now()
    try {
      await check()
      this.#known = { at: now(), failure: undefined }
    } catch (failure) {
      this.#known = { at: now(), failure }
      throw failure
    } finally {
      this.#checkingSince = undefined
    }
  }
}

/** Whether an age is below the maximum; after the clock was set back it is negative. */
function within(age: number, max: number): boolean {
  return age >= 0 && age < max
}
