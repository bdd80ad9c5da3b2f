import { ApiError } from '../http/errors.ts'

/** A client that comes back this much later will find that some have ended, and not come back all at once. */
const RETRY_AFTER_SECONDS = 5

/** The place of one request among those at work. */
export interface Permit {
  /** The request is not over before this work has ended, in whatever way. */
  keepDuring(work: Promise<unknown>): void
  /** The request itself has been answered; doing so twice changes nothing. */
  leave(): void
}

/**
 * Holds the requests at work to a number. Each costs descriptors, and the runtime ends when those run out: with
 * it every stream of everybody, where a refusal costs one client a few seconds.
 */
export class RequestCap {
  readonly #most: number
  #permits = 0

  /** @param most how many may be at work at the same time */
  constructor(most: number) {
    this.#most = most
  }

  /** How many requests are at work. */
  get seated(): number {
    return this.#permits
  }

  /** @throws ApiError `service_unavailable` when as many as may be are at work */
  enter(): Permit {
    if (this.#permits >= this.#most) {
      const message = 'The router is at work on as many requests as it can carry.'
      throw new ApiError('service_unavailable', message, { retryAfter: RETRY_AFTER_SECONDS })
    }
    this.#permits += 1
    const holds = new Set<unknown>([this])
    const letGo = (hold: unknown) => {
      if (holds.delete(hold) && holds.size === 0) this.#permits -= 1
    }
    return {
      keepDuring: (work) => {
        holds.add(work)
        work.then(
          () => letGo(work),
          () => letGo(work),
        )
      },
      leave: () => letGo(this),
    }
  }
}
