import { ApiError } from '../http/errors.ts'
import { FairShare } from './fair-share.ts'

/** Seconds after which a refused client should try again: some of the open requests have ended by then. */
const RETRY_AFTER_SECONDS = 5

/** Memory for the bodies of open requests, bytes. A body is kept as long as it may have to be sent to another route. */
const BODY_BYTES = 256 * 1024 * 1024

/** What a request does when it is refused memory: it ends, or it continues without what the memory was for. */
export type IfRefused = 'request ends' | 'request goes on'

/** Permission for one request to run. */
export interface Permit {
  /**
   * Reserves `bytes` bytes for the request's body until the request is over. A request that ends because it is refused
   * releases at once what it had, so that some of several growing requests find room. One that continues keeps what it had.
   * @throws ApiError `service_unavailable` when no memory is left, `rate_limit_exceeded` when this customer has its share
   */
  takeMemory(bytes: number, ifRefused?: IfRefused): void
  /** Keeps the permit until this work has ended, whether it succeeds or fails. */
  keepDuring(work: Promise<unknown>): void
  /** To be called when the request has been answered. A second call has no effect. */
  leave(): void
}

/**
 * Limits the number of open requests and the memory of their bodies, and divides both fairly among customers. Each
 * request uses file descriptors, and the runtime process ends when it runs out of them, which breaks every open
 * stream. Refusing a request only costs one client a few seconds.
 */
export class RequestCap {
  readonly #requests: FairShare
  readonly #memory: FairShare

  /** @param maxRequests how many requests may be open at the same time */
  constructor(maxRequests: number, bodyBytes = BODY_BYTES) {
    this.#requests = new FairShare(maxRequests)
    this.#memory = new FairShare(bodyBytes)
  }

  /** Number of open requests. */
  get openRequests(): number {
    return this.#requests.taken
  }

  /** @throws ApiError `service_unavailable` when all permits are in use, `rate_limit_exceeded` when this customer has its share */
  enter(customerId: string): Permit {
    requireTaken(this.#requests.take(customerId, 1), {
      full: 'The router already has as many open requests as it can handle.',
      share: 'You already have as many open requests as your share of the router allows.',
    })
    const holds = new Set<unknown>([this])
    let memory = 0
    const giveBackMemory = () => {
      this.#memory.giveBack(customerId, memory)
      memory = 0
    }
    const releaseHold = (hold: unknown) => {
      if (!holds.delete(hold) || holds.size > 0) return
      this.#requests.giveBack(customerId, 1)
      giveBackMemory()
    }
    // After the request is over, what a streamed answer still does (reading its next page) is not counted.
    return {
      takeMemory: (bytes, ifRefused = 'request ends') => {
        if (holds.size === 0) return
        const outcome = this.#memory.take(customerId, bytes)
        if (outcome === 'taken') memory += bytes
        else if (ifRefused === 'request ends') giveBackMemory()
        requireTaken(outcome, {
          full: 'The router holds as many request bodies as it can carry.',
          share:
            'The router holds as many of your request bodies as it can carry beside those of others.',
        })
      },
      keepDuring: (work) => {
        if (holds.size === 0) return
        holds.add(work)
        work.then(
          () => releaseHold(work),
          () => releaseHold(work),
        )
      },
      leave: () => releaseHold(this),
    }
  }
}

function requireTaken(
  outcome: ReturnType<FairShare['take']>,
  messages: { readonly full: string; readonly share: string },
): void {
  if (outcome === 'taken') return
  const code = outcome === 'full' ? 'service_unavailable' : 'rate_limit_exceeded'
  throw new ApiError(code, messages[outcome], { retryAfter: RETRY_AFTER_SECONDS })
}
