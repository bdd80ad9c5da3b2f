import { ApiError } from '../http/errors.ts'
import { FairShare } from './fair-share.ts'

/** A client that comes back this much later will find that some have ended, and not come back all at once. */
const RETRY_AFTER_SECONDS = 5

/** Memory for the bodies of requests at work; each is kept for as long as another route may be sent it. */
const BODY_BYTES = 256 * 1024 * 1024

/** The place of one request among those at work. */
export interface Permit {
  /**
   * Counts so many bytes of the request's body in, until the request is over.
   * @throws ApiError `service_unavailable` or, where others would get them, `rate_limit_exceeded`
   */
  takeMemory(bytes: number): void
  /** The request is not over before this work has ended, in whatever way. */
  keepDuring(work: Promise<unknown>): void
  /** The request itself has been answered; doing so twice changes nothing. */
  leave(): void
}

/**
 * Holds the requests at work, and the memory of their bodies, to a number, and shares both out among customers. Each
 * request costs descriptors, and the runtime ends when those run out: with it every stream of everybody, where a
 * refusal costs one client a few seconds.
 */
export class RequestCap {
  readonly #requests: FairShare
  readonly #memory: FairShare

  /** @param most how many may be at work at the same time */
  constructor(most: number, bodyBytes = BODY_BYTES) {
    this.#requests = new FairShare(most)
    this.#memory = new FairShare(bodyBytes)
  }

  /** How many requests are at work. */
  get seated(): number {
    return this.#requests.taken
  }

  /** @throws ApiError `service_unavailable` when as many as may be are at work, `rate_limit_exceeded` for one's part */
  enter(customerId: string): Permit {
    demand(this.#requests.take(customerId, 1), {
      full: 'The router is at work on as many requests as it can carry.',
      share:
        'The router is at work on as many of your requests as it can carry beside those of others.',
    })
    const holds = new Set<unknown>([this])
    let memory = 0
    const letGo = (hold: unknown) => {
      if (!holds.delete(hold) || holds.size > 0) return
      this.#requests.giveBack(customerId, 1)
      this.#memory.giveBack(customerId, memory)
    }
    return {
      takeMemory: (bytes) => {
        demand(this.#memory.take(customerId, bytes), {
          full: 'The router holds as many request bodies as it can carry.',
          share:
            'The router holds as many of your request bodies as it can carry beside those of others.',
        })
        memory += bytes
      },
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

function demand(
  outcome: ReturnType<FairShare['take']>,
  messages: { readonly full: string; readonly share: string },
): void {
  if (outcome === 'taken') return
  const code = outcome === 'full' ? 'service_unavailable' : 'rate_limit_exceeded'
  throw new ApiError(code, messages[outcome], { retryAfter: RETRY_AFTER_SECONDS })
}
